/** Cookies, storage and the address of the browser. */

/** Value of a cookie that scripts may read; empty without it. */
export const cookie = (name: string): string =>
  document.cookie
    .split('; ')
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1) ?? ''

/** What is remembered for this browser under a name; undefined when nothing is, or when storage is off. */
export function remembered(name: string): string | undefined {
  try {
    return localStorage.getItem(`svccloud.${name}`) ?? undefined
  } catch {
    return undefined
  }
}

/** Remembers a choice for this browser. Never a secret. */
export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`svccloud.${name}`, value)
  } catch {
    // a browser without storage asks again
  }
}

let taken: { readonly path: string; readonly fragment: string } | undefined

/** Puts back what was taken from the fragment of this page: it is loaded again. */
export function putFragmentBack(): void {
  if (taken?.path !== location.pathname) return
  history.replaceState(history.state, '', location.pathname + location.search + taken.fragment)
}

/** A member of the address's fragment, such as a token of a mail. The fragment is removed from the address and from the
 *  history. */
export function takeFromFragment(name: string): string {
  if (location.hash !== '') taken = { path: location.pathname, fragment: location.hash }
  const value = new URLSearchParams(location.hash.slice(1)).get(name) ?? ''
  if (location.hash !== '') history.replaceState(history.state, '', location.pathname + location.search)
  return value
}
