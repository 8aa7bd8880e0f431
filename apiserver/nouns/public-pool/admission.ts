/** Pools of public addresses that operators create, change and remove with kubectl must satisfy the rules of the
 *  operator API. */
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../../resources/public-pool/index.ts'
import { type PoolObject, requireApart, requireSound, requireUnused } from './rules.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../../kit/admission/kind.ts'

const PLATFORM: PlatformFields = {
  noun: 'pool',
  finalizer: finalizerOf(PublicPool),
  goesWhen: 'nobody has an address of the pool',
}

const FIELDS: Readonly<Record<string, string>> = { is_private: 'isPrivate' }

/** Throws the Problem that the API would answer. */
function validateCreation({ caches }: AdmissionParts, pool: PoolObject): readonly AdmittedChange[] {
  denyPlatformFields(pool, undefined, PLATFORM)
  requireSound({ caches }, pool.spec, (field) => `spec.${FIELDS[field] ?? field}`)
  requireApart({ id: pool.metadata.name, cidr: pool.spec.cidr }, caches.of(PublicPool).list())
  return []
}

/** Throws the Problem that the API would answer; the kind itself protects immutable fields. */
function validateChange(pool: PoolObject, before: PoolObject): readonly AdmittedChange[] {
  denyPlatformFields(pool, before, PLATFORM)
  return []
}

/** Throws the Problem that the API would answer. */
async function validateDeletion({ db }: AdmissionParts, pool: PoolObject): Promise<readonly AdmittedChange[]> {
  if (pool.metadata.deletionTimestamp === undefined) await requireUnused({ db }, pool.metadata.name)
  return []
}

export const publicPoolAdmission: AdmissionRules<PublicPoolSpec, PublicPoolStatus> = {
  create: validateCreation,
  update: (_parts, pool, before) => validateChange(pool, before),
  delete: validateDeletion,
  reads: [PublicPool, Zone],
}
