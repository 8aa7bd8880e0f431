/** Follows the stream of changes from the first page of somebody who is signed in. */
import { feeds } from '../nouns/registry.ts'

let isFollowing = false

/** The first page appears without it: its code comes after that of the page. */
export function follow(): void {
  if (isFollowing) return
  isFollowing = true
  import('../api/changes.ts')
    .then(({ followChanges }) => followChanges(feeds(), new AbortController().signal))
    // pages read again from time to time, and the next one asks for it once more
    .catch(() => (isFollowing = false))
}
