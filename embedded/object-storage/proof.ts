/** Who asks, proven before they take a place of anybody; and the places that a tenant has. */
import { prove, type Signature, type SigningKeys } from '../../kit/s3/signature.ts'
import { byTheMachine, type Clock } from '../../kit/sys/clock.ts'
import { type RawRequest, Refusal, slowDown } from './request.ts'
import type { Tenant, Tenants } from './tenants.ts'

/** What a tenant has under way besides its proven requests. */
export interface Counts {
  /** Whose secret is not known here: the engine has to prove them. */
  readonly unproven: Map<string, number>
  /** That are held, larger than a piece. */
  readonly documents: Map<string, number>
}

/** Throws the Refusal for the one over the maximum; answers what gives the place back. */
export function takePlace(counts: Map<string, number>, id: string, maximum: number): () => void {
  const count = counts.get(id) ?? 0
  if (count >= maximum) throw slowDown()
  counts.set(id, count + 1)
  return () => {
    const left = (counts.get(id) ?? 1) - 1
    if (left === 0) counts.delete(id)
    else counts.set(id, left)
  }
}

export interface Prover {
  readonly tenants: Pick<Tenants, 'byKey'>
  /** What a tenant signs with; undefined where it is not known here. */
  readonly secretOf: (tenant: Tenant) => string | undefined
  readonly clock: Clock
  readonly keys: SigningKeys
}

/** Whose request it is, and what they signed it with. Throws the Refusal for a signature that is not theirs. */
export function identify(
  { tenants, secretOf, clock, keys }: Prover,
  raw: RawRequest,
  signature: Signature,
): { readonly tenant: Tenant; readonly secret: string | undefined } {
  const tenant = tenants.byKey(signature.accessKeyId)
  if (tenant === undefined)
    throw new Refusal(403, 'InvalidAccessKeyId', 'The access key Id you provided does not exist in our records.')
  const secret = secretOf(tenant)
  if (secret !== undefined) prove(raw, signature, keys(secret, signature), byTheMachine(clock.now()))
  return { tenant, secret }
}
