// Typesets the formulas of a page: arithmatex has put them in elements of their own, as \(...\) or \[...\].
for (const formula of document.querySelectorAll(".arithmatex")) {
  const source = formula.textContent.trim();
  katex.render(source.slice(2, -2), formula, { displayMode: source.startsWith("\\[") });
}

// A formula in a line of text stays whole, unless the line is too short for it.
const wrapLongFormulas = () => {
  for (const formula of document.querySelectorAll("span.arithmatex")) {
    formula.classList.remove("arithmatex--long");
    let line = formula.parentElement;
    while (line.clientWidth === 0 && line.parentElement) line = line.parentElement; // an inline element has no width
    formula.classList.toggle("arithmatex--long", formula.offsetWidth > line.clientWidth);
  }
};
document.fonts.ready.then(wrapLongFormulas);
addEventListener("resize", wrapLongFormulas);
