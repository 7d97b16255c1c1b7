// Search without a web server. Browsers give no worker to a page that was opened as a file, so a hidden
// frame stands in for one: it runs the same script, and messages go to and fro between the two windows.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<!doctype html><title>search</title>"
      this.frame.addEventListener("load", () => this.start(url), { once: true })
      document.body.append(this.frame)
    }

    start(url) {
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.addEventListener("load", () => {
        this.inside = inside
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      })
      script.src = url
      inside.document.body.append(script)
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
      else this.waiting.push(data)
    }
  }
}
