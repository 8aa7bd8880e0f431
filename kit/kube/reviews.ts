/** Questions of a component to the cluster about somebody else: the owner of a token, and their rights. */
import type { Transport } from './transport.ts'

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

/** Undefined for a token that the cluster does not know. Rejects when the cluster does not answer. */
export async function reviewToken(kubernetes: Transport, token: string): Promise<ReviewedUser | undefined> {
  const { authenticated, user } = await create(kubernetes, 'authentication.k8s.io', 'TokenReview', { token })
  return authenticated === true && user?.username !== undefined
    ? { name: user.username, groups: user.groups ?? [] }
    : undefined
}

/** Whether the cluster allows it. Rejects when the cluster does not answer. */
export async function reviewAccess(
  kubernetes: Transport,
  { name, groups }: ReviewedUser,
  attributes: ReviewedAttributes,
): Promise<boolean> {
  const spec = { user: name, groups, ...attributes }
  return (await create(kubernetes, 'authorization.k8s.io', 'SubjectAccessReview', spec)).allowed === true
}

interface ReviewStatus {
  readonly authenticated?: boolean
  readonly allowed?: boolean
  readonly user?: { readonly username?: string; readonly groups?: readonly string[] }
}

async function create(kubernetes: Transport, group: string, kind: string, spec: object): Promise<ReviewStatus> {
  const response = await kubernetes({
    method: 'POST',
    path: `/apis/${group}/v1/${kind.toLowerCase()}s`,
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ apiVersion: `${group}/v1`, kind, spec }),
  })
  const text = await response.text()
  if (response.status >= 300) throw new Error(`the cluster answered ${response.status} to a ${kind}`)
  // every member is read as optional
  return (JSON.parse(text) as { readonly status?: ReviewStatus }).status ?? {}
}
