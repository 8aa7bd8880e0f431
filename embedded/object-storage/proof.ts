/** Identifies callers before they use anybody's places; counts the places of a tenant. */
import { prove, type Signature, type SigningKeys } from '../../kit/s3/signature.ts'
import { byTheMachine, type Clock } from '../../kit/sys/clock.ts'
import { type RawRequest, S3Refusal, slowDown } from './request.ts'
import type { Tenant, Tenants } from './tenants.ts'

/** Work in progress for each tenant, besides its proven requests. */
export interface Counts {
  /** Requests that only the engine can verify, because the secret is unknown here. */
  readonly unproven: Map<string, number>
  /** Documents in memory that are larger than one piece. */
  readonly documents: Map<string, number>
}

/** Takes a place; throws the Refusal above the maximum. Returns the function that releases the place. */
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
  /** The secret of a tenant; undefined when it is unknown here. */
  readonly secretOf: (tenant: Tenant) => string | undefined
  readonly clock: Clock
  readonly keys: SigningKeys
}

/** The tenant of a request, and the secret that signed it. Throws the Refusal when the signature is wrong. */
export function identify(
  { tenants, secretOf, clock, keys }: Prover,
  raw: RawRequest,
  signature: Signature,
): { readonly tenant: Tenant; readonly secret: string | undefined } {
  const tenant = tenants.byKey(signature.accessKeyId)
  if (tenant === undefined)
    throw new S3Refusal(403, 'InvalidAccessKeyId', 'The access key Id you provided does not exist in our records.')
  const secret = secretOf(tenant)
  if (secret !== undefined) prove(raw, signature, keys(secret, signature), byTheMachine(clock.now()))
  return { tenant, secret }
}
