// Search runs in a web worker, which browsers refuse to pages from the file system. There a hidden frame takes its place; the theme's
// worker knows the name IFrameWorker. Our own, since what the theme would use is fetched from a CDN when the page is read.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      window.addEventListener("message", event => {
        if (event.source !== this.inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      // Messages that come before the script has run wait for it.
      this.ready = new Promise(resolve => {
        this.inside.started = resolve;
        this.inside.document.open();
        this.inside.document.write(`<!doctype html><title>search</title><script>
          postMessage = message => parent.postMessage(message, "*");
          importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve, reject) => {
            const script = document.createElement("script");
            script.src = url;
            script.onload = resolve;
            script.onerror = reject;
            document.body.appendChild(script);
          })), Promise.resolve());
          <\/script><body><script src="${new URL(url, location)}" onload="started()"><\/script>`);
        this.inside.document.close();
      });
      this.frame = frame;
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = window.Worker = IFrameWorker;
}
