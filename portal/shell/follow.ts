/** Follows the stream of changes from the first page of somebody who is signed in. */
import { followChanges } from '../api/changes.ts'
import { feeds } from '../nouns/registry.ts'

let isFollowing = false

export function follow(): void {
  if (isFollowing) return
  isFollowing = true
  followChanges(feeds(), new AbortController().signal)
}
