/** The registration of a noun: everything that the API server has to know of it. What it offers, what its kinds are,
 *  who may write them past the API. `nouns.ts` is the list; what used to be lists of their own is computed from it. */
import type { Endpoint } from '../kit/http/endpoint.ts'
import type { Kind } from './admission/kind.ts'

/** `Needs` is what its endpoints are built from. */
export interface Noun<Needs> {
  /** As audit actions and references have it: `server_group`. */
  readonly name: string
  /** Its kinds in Kubernetes; none for a noun whose rows stand in PostgreSQL. */
  readonly kinds: readonly Kind[]
  readonly endpoints: (parts: Needs) => readonly Endpoint[]
}

/** What is left out is empty: no kinds, no endpoints. */
export const noun = <Needs = unknown>(registration: Pick<Noun<Needs>, 'name'> & Partial<Noun<Needs>>): Noun<Needs> => ({
  kinds: [],
  endpoints: () => [],
  ...registration,
})
