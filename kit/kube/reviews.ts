/** Questions of a component to the cluster about somebody else: the owner of a token, and their rights. */
import { Unavailable } from '../../domain/problem.ts'
import type { Clock } from '../sys/clock.ts'
import type { Transport } from './transport.ts'
import { within } from './within.ts'

/** The cluster that is asked. */
export interface Reviewing {
  readonly kubernetes: Transport
  readonly clock: Clock
}

/** Shorter than that of other requests: somebody waits for the answer. */
const TIMEOUT_MILLISECONDS = 10_000

export interface ReviewedUser {
  readonly name: string
  readonly groups: readonly string[]
}

export type ReviewedAttributes =
  | {
      readonly resourceAttributes: {
        readonly group: string
        readonly resource: string
        readonly verb: string
        readonly name?: string
        readonly namespace?: string
      }
    }
  | { readonly nonResourceAttributes: { readonly path: string; readonly verb: string } }

/** Undefined for a token that the cluster does not know. Throws Unavailable when the cluster does not answer. */
export async function reviewToken(reviewing: Reviewing, token: string): Promise<ReviewedUser | undefined> {
  const { authenticated, user } = await create(reviewing, 'authentication.k8s.io', 'TokenReview', { token })
  return authenticated === true && user?.username !== undefined
    ? { name: user.username, groups: user.groups ?? [] }
    : undefined
}

/** Whether the cluster allows it. Throws Unavailable when the cluster does not answer. */
export async function reviewAccess(
  reviewing: Reviewing,
  { name, groups }: ReviewedUser,
  attributes: ReviewedAttributes,
): Promise<boolean> {
  const spec = { user: name, groups, ...attributes }
  return (await create(reviewing, 'authorization.k8s.io', 'SubjectAccessReview', spec)).allowed === true
}

interface ReviewStatus {
  readonly authenticated?: boolean
  readonly allowed?: boolean
  readonly user?: { readonly username?: string; readonly groups?: readonly string[] }
}

async function create(
  { kubernetes, clock }: Reviewing,
  group: string,
  kind: string,
  spec: object,
): Promise<ReviewStatus> {
  try {
    return await within(clock, TIMEOUT_MILLISECONDS, async (signal) => {
      const response = await kubernetes({
        method: 'POST',
        path: `/apis/${group}/v1/${kind.toLowerCase()}s`,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ apiVersion: `${group}/v1`, kind, spec }),
        signal,
      })
      const text = await response.text()
      if (response.status >= 300) throw new Error(`status ${response.status} for a ${kind}`)
      // every member is read as optional
      return (JSON.parse(text) as { readonly status?: ReviewStatus }).status ?? {}
    })
  } catch (error) {
    throw new Unavailable('the management cluster', error)
  }
}
