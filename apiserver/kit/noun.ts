/** The registration of a noun: everything that the API server has to know of it. Its endpoints, its kinds, and who may
 *  write them past the API. `nouns.ts` is the list; what used to be separate lists is computed from it. */
import type { Endpoint } from '../../kit/http/endpoint.ts'
import type { Feed } from './feed.ts'
import type { Kind } from './admission/kind.ts'
import type { Parts } from './parts.ts'

/** `Needs` is what its endpoints are built from; `Gives` is what it opens once, for itself and for other nouns. */
export interface Noun<Needs, Gives extends object = object> {
  /** Its name in audit actions and references: `server_group`. */
  readonly name: string
  /** Its kinds in Kubernetes; none for a noun whose rows are in PostgreSQL. */
  readonly kinds: readonly Kind[]
  readonly open: (parts: Parts) => Gives
  readonly endpoints: (parts: Needs) => readonly Endpoint[]
  /** Its items in the stream of changes; none for a noun that accounts do not list. */
  readonly feeds: (parts: Needs) => readonly Feed[]
}

type Registration<Needs, Gives extends object> = Pick<Noun<Needs, Gives>, 'name'> &
  Partial<Pick<Noun<Needs, Gives>, 'kinds' | 'endpoints' | 'feeds'>> &
  (object extends Gives ? { readonly open?: never } : Pick<Noun<Needs, Gives>, 'open'>)

/** Members that are left out are empty: no kinds, no endpoints, no feeds. A noun that declares what it gives must open
 *  it. */
export const noun = <Needs = unknown, Gives extends object = object>(
  registration: Registration<Needs, Gives>,
): Noun<Needs, Gives> => ({
  kinds: [],
  endpoints: () => [],
  feeds: () => [],
  open: () => ({}) as Gives, // only a noun that gives nothing leaves it out
  ...registration,
})
