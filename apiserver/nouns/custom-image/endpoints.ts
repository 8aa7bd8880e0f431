/** Creating, reading, changing and deleting custom images. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../domain/defined.ts'
import { badField } from '../../../domain/problem.ts'
import { type CustomImageFacts, requireDeletableImage } from '../../../domain/custom-image/rules.ts'
import { claimCustomImage, releaseCustomImage } from '../../../db/custom-image/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import { replacing } from '../../../kit/kube/merge-patch.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import {
  copyCustomImage,
  type CreateCustomImage,
  createCustomImage,
  CustomImage,
  customImageFactsOf,
  type CustomImageSpec,
  type CustomImageStatus,
  type CustomImageView,
  deleteCustomImage,
  getCustomImage,
  listCustomImages,
  toCustomImageView,
  updateCustomImage,
} from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { create } from '../../kit/change/create.ts'
import { operate, type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { changeObject } from '../../kit/plain/change-object.ts'
import { etagOfObject, type ObjectParts } from '../../kit/plain/objects.ts'
import { requireSource, type SourceFields, IMAGE_SOURCE_READS } from './sources.ts'

export type CustomImages = OperatedObjects<CustomImageSpec, CustomImageStatus, CustomImageView, CustomImageFacts>

/** Operations name a custom image a template, because the contract names their target so. */
const TARGET = 'template'
const FIELDS: SourceFields = {
  storage: 'source_storage_id',
  snapshot: 'source_snapshot_id',
  backup: 'source_backup_id',
  zone: 'zone',
}
/** More than any quota allows. */
const LISTED_MAXIMUM = 10_000

export const openCustomImages = (parts: ObjectParts): CustomImages =>
  openOperated(parts, {
    name: TARGET,
    title: 'custom image',
    resource: CustomImage,
    surroundingsOf: () => ({}),
    toView: toCustomImageView,
    factsOf: customImageFactsOf,
  })

export function customImageEndpoints(parts: Parts & { readonly customImages: CustomImages }): readonly Endpoint[] {
  for (const type of IMAGE_SOURCE_READS) parts.caches.of<unknown, unknown>(type)
  const { customImages: images } = parts
  return [
    customerEndpoint(listCustomImages, async ({ caller: { accountId } }) => {
      await images.catchUp(accountId)
      const items = images.page(accountId, {}, undefined, LISTED_MAXIMUM).map(images.viewOf)
      return { status: 200, body: { items, next_cursor: null } }
    }),
    customerEndpoint(createCustomImage, (call) => {
      const { zone, title, labels } = call.body
      return make(parts, images, call, { zone, title, labels, source: sourceOf(call.body) }, 'template.create')
    }),
    customerEndpoint(getCustomImage, async ({ caller, params }) => {
      const image = await images.read(caller.accountId, params.id)
      return { status: 200, body: { custom_image: images.viewOf(image) }, headers: { etag: etagOfObject(image) } }
    }),
    customerEndpoint(updateCustomImage, (call) => update(parts, images, call)),
    customerEndpoint(copyCustomImage, (call) => copy(parts, images, call)),
    customerEndpoint(deleteCustomImage, (call) =>
      operate(parts, images, call, { kind: 'template.delete', validate: requireDeletableImage, spec: {} }),
    ),
  ]
}

/** Answers 202 with the image under its own name: `create` uses the name that operations use. */
async function make<R extends Route>(
  parts: Parts,
  images: CustomImages,
  call: Call<R, Customer>,
  spec: Omit<CustomImageSpec, 'operation'>,
  kind: 'template.create' | 'template.copy',
): Promise<Answer> {
  const { accountId } = call.caller
  requireZone(parts, spec.zone, 'zone')
  const sizeGibibytes = requireSource({ ...parts, namespace: accountNamespace(accountId) }, spec, FIELDS)
  const { zone, title } = spec
  const answer = await create(parts, images, call, {
    kind,
    finalizer: finalizerOf(CustomImage),
    detail: { zone, title },
    specOf: (operation) => ({ ...spec, operation }),
    claim: (tx, imageId) => claimCustomImage(tx, { accountId, imageId, sizeGibibytes }),
    release: (tx, imageId) => releaseCustomImage(tx, { accountId, imageId }),
  })
  // the answer of `create`
  const { body: made } = answer as { readonly body: Readonly<Record<string, unknown>> }
  const { [TARGET]: image, operation } = made
  return { status: 202, body: { custom_image: image, operation } }
}

/** The one source that a request names. Throws 400 for a file without a checksum, and for a checksum without a file. */
function sourceOf({
  source_url: url,
  checksum_sha256: checksum,
  source_storage_id: storageId,
  source_snapshot_id: snapshotId,
  source_backup_id: backupId,
}: CreateCustomImage): CustomImageSpec['source'] {
  if (url === undefined && checksum !== undefined) throw badField('checksum_sha256', 'belongs to a source_url')
  if (typeof storageId === 'string') return { storageId }
  if (typeof snapshotId === 'string') return { snapshotId }
  if (typeof backupId === 'string') return { backupId }
  if (url === undefined) throw new Error('a body without a source') // its schema accepts none
  if (checksum === undefined) throw badField('checksum_sha256', 'is required with source_url')
  return { url, checksum: checksum.toLowerCase() }
}

async function copy(parts: Parts, images: CustomImages, call: Call<typeof copyCustomImage, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: imageId },
    body: { zone },
  } = call
  const { spec } = await images.read(accountId, imageId)
  const { title, labels } = spec
  return make(parts, images, call, { zone, title, labels, source: { imageId } }, 'template.copy')
}

async function update(
  parts: Parts,
  images: CustomImages,
  call: Call<typeof updateCustomImage, Customer>,
): Promise<Answer> {
  const { title, labels } = call.body
  const written = await changeObject(parts, images, call, {
    changes: ({ spec }) => [
      ...(title === undefined || title === spec.title ? [] : [{ field: 'title', before: spec.title, after: title }]),
      ...(labels === undefined || isDeepStrictEqual(labels, spec.labels)
        ? []
        : [{ field: 'labels', before: spec.labels, after: labels }]),
    ],
    patch: ({ spec }) => ({
      ...defined({ title }),
      ...(labels === undefined ? {} : { labels: replacing(spec.labels, labels) }),
    }),
  })
  return { status: 200, body: { custom_image: images.viewOf(written) }, headers: { etag: etagOfObject(written) } }
}

/** Throws 400 for a zone that does not exist. */
export function requireZone({ caches }: Pick<Parts, 'caches'>, name: string, field: string): void {
  if (caches.of(Zone).get({ name }) === undefined) throw badField(field, 'there is no such zone')
}
