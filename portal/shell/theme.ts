/** Light, dark, or as the system is. `public/theme.js` sets it before the first paint. */
const NAME = 'svccloud-theme'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

export const chosenTheme = (): Theme => {
  const theme = document.documentElement.dataset['theme']
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export function chooseTheme(theme: Theme): void {
  try {
    if (theme === 'system') localStorage.removeItem(NAME)
    else localStorage.setItem(NAME, theme)
  } catch {
    // a browser without storage forgets it
  }
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
  document.dispatchEvent(new Event('themechange'))
}
