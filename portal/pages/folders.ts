/** Folders of a bucket: beginnings of keys up to a "/". Pure. */

export interface Folder {
  readonly name: string
  /** With the "/" at its end; empty for the bucket itself. */
  readonly prefix: string
}

/** The folder and those above it, the outermost first; empty for the bucket itself. */
export function foldersOf(prefix: string): readonly Folder[] {
  const parts = prefix.split('/').slice(0, -1)
  return parts.map((name, at) => ({ name: name === '' ? '/' : name, prefix: `${parts.slice(0, at + 1).join('/')}/` }))
}

/** The name of an object or a folder in its folder. */
export function nameIn(prefix: string, key: string): string {
  const rest = key.startsWith(prefix) ? key.slice(prefix.length) : key
  return rest === '' || rest === '/' ? '/' : rest
}

/** The folder that a page shows, by a parameter of its address, which anybody can write. */
export function folderIn(value: unknown): string {
  if (value === undefined || value === null || value === '') return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.endsWith('/') ? text : `${text}/`
}

/** The address of the page of a bucket, or of a folder of it. */
export const bucketHref = (zone: string, bucket: string, prefix = ''): string =>
  `/object-storage/${encodeURIComponent(zone)}/${encodeURIComponent(bucket)}${
    prefix === '' ? '' : `?folder=${encodeURIComponent(prefix)}`
  }`
