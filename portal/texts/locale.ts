/** The language of the page, as `Intl` wants it. */

let current = 'en'

export const locale = (): string => current
export const setLocale = (tag: string): void => {
  current = tag
}
