/** Playgrounds that people start and end past the API must satisfy its rules: everything is checked, nothing is
 *  claimed. */
import { claimPlayground } from '../../../db/playground/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Playground, type PlaygroundSpec, type PlaygroundStatus } from '../../../resources/playground/index.ts'
import { requireAccount, requireVerifiedOwner } from '../../kit/admission/account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import { requireEligible, requireRegion, rowOf } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'playground',
  finalizer: finalizerOf(Playground),
  goesWhen: 'nothing of the playground is left',
}

type PlaygroundObject = KubeObject<PlaygroundSpec, PlaygroundStatus>

/** Throws the Problem that the API would answer. */
async function validateCreation(
  parts: AdmissionParts,
  playground: PlaygroundObject,
): Promise<readonly AdmittedChange[]> {
  const { metadata, spec } = playground
  const accountId = await requireAccount(parts, playground, 'playgrounds')
  denyPlatformFields(playground, undefined, PLATFORM)
  const region = requireRegion(parts, spec.region)
  await requireVerifiedOwner(parts, accountId)
  const now = parts.clock.now()
  await requireEligible(parts, accountId, now)
  const draft = rowOf(parts, { id: metadata.name, region, release: '' }, '', now)
  await rehearse(parts, (tx) => claimPlayground(tx, accountId, draft))
  return [{ action: 'playground.start', changes: [] }]
}

/** Throws 403 for fields that only the platform writes; the kind itself refuses every other change. */
function validateChange(
  _parts: AdmissionParts,
  playground: PlaygroundObject,
  before: PlaygroundObject,
): readonly AdmittedChange[] {
  denyPlatformFields(playground, before, PLATFORM)
  return []
}

export const playgroundAdmission: AdmissionRules<PlaygroundSpec, PlaygroundStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: (_parts, { metadata }) =>
    metadata.deletionTimestamp === undefined ? [{ action: 'playground.end', changes: [] }] : [],
  actionsOf: (after, before) =>
    before === undefined ? ['playground.start'] : after === undefined ? ['playground.end'] : [],
  reads: [Zone],
}
