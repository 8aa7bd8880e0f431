/** Optimistic concurrency: single reads return an ETag, changes may name the one that they were made from. */
import { conflict } from '../../domain/problem.ts'
import type { RequestFacts } from './call.ts'

/** A strong entity tag. */
export const etagOf = (generation: number): string => `"${generation}"`

/** Throws a Problem (409) when the request names other versions than the current one. */
export function requireMatch(request: RequestFacts, etag: string): void {
  const wanted = request.header('if-match')
  if (wanted === undefined || wanted.trim() === '*') return
  const isCurrent = wanted.split(',').some((tag) => tag.trim() === etag)
  if (!isCurrent)
    throw conflict(
      'state_not_allowed',
      'The resource has changed since it was read. Read it again, then repeat the change.',
    )
}
