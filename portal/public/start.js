/** While a release is rolled out, a page of one release may ask a server of the other for its files. Then the page is
 *  loaded again, once, as long as it shows nothing that could be lost. A classic script, before all others. */
;(() => {
  const MARK = 'svccloud-reloaded-for'
  const LATER_MILLISECONDS = 1_000

  function reloadOnce(file) {
    if (document.getElementById('portal')?.hasChildNodes()) return
    try {
      if (sessionStorage.getItem(MARK) === file) return
      sessionStorage.setItem(MARK, file)
    } catch {
      return // Without storage, nothing would end the loading.
    }
    setTimeout(() => location.reload(), LATER_MILLISECONDS)
  }

  addEventListener(
    'error',
    ({ target }) => {
      if (target instanceof HTMLScriptElement) reloadOnce(target.src)
      else if (target instanceof HTMLLinkElement) reloadOnce(target.href)
    },
    true,
  )
  addEventListener('vite:preloadError', ({ payload }) => reloadOnce(String(payload)))
})()
