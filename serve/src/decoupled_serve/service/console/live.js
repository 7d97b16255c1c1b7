// Polls at intervals, and stops while the page is hidden.

export function poll(work, pause = () => 1000) {
  let timer = null, stopped = false, busy = false;

  async function turn() {
    if (stopped || busy || document.hidden) return;
    busy = true;
    try {
      await work();
    } finally {
      busy = false;
    }
    clearTimeout(timer);
    if (!stopped && !document.hidden) timer = setTimeout(turn, pause());
  }

  const seen = () => {
    clearTimeout(timer);
    turn();
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  return {
    now: seen,
    stop() {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}
