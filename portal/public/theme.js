/** Sets the chosen theme before the first paint: `light`, `dark`, or nothing for that of the system. A classic script,
 *  because modules run after the page is parsed. */
;(() => {
  try {
    const theme = localStorage.getItem('svccloud-theme')
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
  } catch {
    // Storage is off in this browser: the theme is that of the system.
  }
})()
