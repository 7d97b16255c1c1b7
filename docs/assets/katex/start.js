// Typesets the formulas of a page: arithmatex has put them in elements of their own, as \(...\) or \[...\].
for (const formula of document.querySelectorAll(".arithmatex")) {
  const source = formula.textContent.trim();
  katex.render(source.slice(2, -2), formula, { displayMode: source.startsWith("\\[") });
}
