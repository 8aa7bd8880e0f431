/** Where a page may continue after sign-in: never on another origin, whoever made the address. */

/** A path of this origin to return to; the first page for anything else. */
export function safeReturn(path: string | null | undefined, origin: string): string {
  if (path === null || path === undefined || !/^\/(?![/\\])/.test(path)) return '/dashboard'
  try {
    const url = new URL(path, origin)
    return url.origin === origin ? url.pathname + url.search + url.hash : '/dashboard'
  } catch {
    return '/dashboard'
  }
}
