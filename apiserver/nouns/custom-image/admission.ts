/** Custom images that people create and delete past the API must satisfy its rules. Everything is checked and nothing
 *  is claimed: the controller claims, once the object exists. */
import { z } from 'zod'
import { defined } from '../../../domain/defined.ts'
import { badField } from '../../../domain/problem.ts'
import { requireDeletableImage } from '../../../domain/custom-image/rules.ts'
import { claimCustomImage } from '../../../db/custom-image/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  CustomImage,
  CreateCustomImage,
  customImageFactsOf,
  type CustomImageSpec,
  type CustomImageStatus,
} from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { admitDeletion, requireAccount, requireStanding } from '../../kit/admission/account-objects.ts'
import {
  type AdmissionParts,
  type AdmissionRules,
  type AdmittedChange,
  editedFields,
} from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { requireLabels, requirePrintableTitle } from '../../kit/admission/readable-fields.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { requireZone } from './endpoints.ts'
import { requireSource, type SourceFields, IMAGE_SOURCE_READS } from './sources.ts'

type CustomImageObject = KubeObject<CustomImageSpec, CustomImageStatus>

const PLATFORM: PlatformFields = {
  noun: 'image',
  finalizer: finalizerOf(CustomImage),
  goesWhen: 'no node has the image',
}

const FIELDS: SourceFields = {
  storage: 'spec.source.storageId',
  snapshot: 'spec.source.snapshotId',
  backup: 'spec.source.backupId',
  zone: 'spec.zone',
}

/** The kind itself restricts the sources: copies have one that requests do not have. */
const Fields = z.strictObject(CreateCustomImage.shape)

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, image: CustomImageObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: imageId },
    spec: { zone, title, labels, source },
  } = image
  const accountId = await requireAccount(parts, image, 'custom images')
  denyPlatformFields(image, undefined, PLATFORM)
  const fault = Fields.safeParse({
    zone,
    title,
    labels,
    ...defined({ source_url: source.url, checksum_sha256: source.checksum }),
  }).error?.issues[0]
  if (fault !== undefined) throw badField(`spec.${String(fault.path[0] ?? '')}`, fault.message)
  requireZone(parts, zone, 'spec.zone')
  const { namespace = '' } = image.metadata
  const sizeGibibytes = requireSource({ ...parts, namespace }, image.spec, FIELDS)
  await requireStanding(parts, accountId)
  await rehearse(parts, (tx) => claimCustomImage(tx, { accountId, imageId, sizeGibibytes }))
  return [{ action: 'custom_image.create', changes: [] }]
}

export const customImageAdmission: AdmissionRules<CustomImageSpec, CustomImageStatus> = {
  create: validateCreation,
  update(_parts, image, before) {
    denyPlatformFields(image, before, PLATFORM)
    // the kind itself fixes the source of an image
    const { spec } = image
    if (spec.title !== before.spec.title) requirePrintableTitle(spec)
    requireLabels(spec)
    const changes = editedFields(['title', 'labels'], spec, before.spec)
    return changes.length === 0 ? [] : [{ action: 'custom_image.update', changes }]
  },
  delete: admitDeletion('custom_image.delete', (before) => {
    const facts = customImageFactsOf(storedOf(before))
    // Its deletion waits for its creation.
    requireDeletableImage(facts.state === 'creating' ? { ...facts, state: 'online' } : facts)
  }),
  reads: IMAGE_SOURCE_READS,
}
