/** Pools of public addresses that operators make, change and remove with kubectl are judged as the operator API would.
 */
import { PUBLIC_POOL_FINALIZER } from '../../resources/labels.ts'
import { PublicPool } from '../../resources/public-pool/index.ts'
import { type PoolObject, requireApart, requireSound, requireUnused } from './rules.ts'
import type { Asked, JudgeParts } from '../server/admission.ts'
import { type Protected, requireUnforged } from '../admission/platform-fields.ts'

const PROTECTED: Protected = {
  noun: 'pool',
  finalizer: PUBLIC_POOL_FINALIZER,
  goesWhen: 'nobody has an address of the pool',
}

const FIELDS: Readonly<Record<string, string>> = { is_private: 'isPrivate' }

/** Throws the Problem that the API would answer. */
export function judgePoolCreation({ caches }: JudgeParts, pool: PoolObject): readonly Asked[] {
  requireUnforged(pool, undefined, PROTECTED)
  requireSound({ caches }, pool.spec, (field) => `spec.${FIELDS[field] ?? field}`)
  requireApart({ id: pool.metadata.name, cidr: pool.spec.cidr }, caches.of(PublicPool).list())
  return []
}

/** Throws the Problem that the API would answer; what never changes the kind itself keeps. */
export function judgePoolChange(pool: PoolObject, before: PoolObject): readonly Asked[] {
  requireUnforged(pool, before, PROTECTED)
  return []
}

/** Throws the Problem that the API would answer. */
export async function judgePoolDeletion({ db }: JudgeParts, pool: PoolObject): Promise<readonly Asked[]> {
  if (pool.metadata.deletionTimestamp === undefined) await requireUnused({ db }, pool.metadata.name)
  return []
}
