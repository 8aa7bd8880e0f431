/** Custom images: disks from which an account creates servers. Stored shape, public shape, conversion and routes. */
import { z } from 'zod'
import type { CustomImageFacts } from '../../domain/custom-image/rules.ts'
import { exactlyOneOf, resource } from '../kit/define.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import {
  DateTime,
  Id,
  Labels,
  ReportedOperation,
  RequestedOperation,
  type Stored,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'
import { ObjectName, OBSERVED, StoredTitle, Title } from '../kit/fields.ts'
import { TEMPLATE_URL_LENGTH_MAXIMUM } from '../catalog/index.ts'
import { AGE, READY, STATE, ZONE } from '../kit/columns.ts'

export const CUSTOM_IMAGE_STATES = ['creating', 'online', 'error', 'deleting'] as const
const CHECKSUM = /^[0-9a-fA-F]{64}$/
const SOURCES = ['url', 'storageId', 'snapshotId', 'backupId', 'imageId'] as const

export const CustomImage = resource({
  kind: 'CustomImage',
  plural: 'customimages',
  shortNames: ['cimg'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A disk from which servers of the account can be created, held by every node of its zone. The source is a ' +
    "file on the Internet with a checksum, a stopped server's storage, a snapshot, a backup, or an image in " +
    'another zone. Servers created from it keep working after its deletion.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone in which servers can be created from it.'),
      title: StoredTitle.describe('Title: one line of free text.'),
      source: z
        .strictObject({
          url: z
            .string()
            .max(TEMPLATE_URL_LENGTH_MAXIMUM)
            .regex(/^https:\/\//)
            .optional()
            .describe('HTTPS URL on the public Internet of a raw or qcow2 disk.'),
          checksum: z.string().max(64).regex(CHECKSUM).optional().describe('SHA-256 of the file at url, in hex.'),
          storageId: ObjectName.optional().describe(
            'Storage in the zone to copy; no running server may have it attached.',
          ),
          snapshotId: ObjectName.optional().describe('Snapshot in the zone to copy.'),
          backupId: ObjectName.optional().describe('Backup in the zone to read.'),
          imageId: ObjectName.optional().describe('Custom image in another zone to copy.'),
        })
        .describe('Source of the disk: exactly one of url, storageId, snapshotId, backupId and imageId.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the image.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(CUSTOM_IMAGE_STATES).describe('State of the image, as in the API.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      sizeGibibytes: z.int().min(0).optional().describe('Minimum size of a boot storage created from it, in GiB.'),
      minMemoryMebibytes: z.int().min(1).optional().describe('Minimum memory of a server created from it, if known.'),
      origin: z
        .strictObject({
          name: ObjectName.describe('Name of the template.'),
          version: ObjectName.describe('Version of its image.'),
        })
        .optional()
        .describe('Template version that its data was created from. The guest boots the kernel of that version.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the image. Written by its controller.'),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.title' },
    STATE,
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    ZONE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone', 'source'],
  rules: [
    {
      rule: `${SOURCES.map((field) => `(has(self.spec.source.${field}) ? 1 : 0)`).join(' + ')} == 1`,
      message: 'source has exactly one of url, storageId, snapshotId, backupId and imageId',
    },
    {
      rule: 'has(self.spec.source.url) == has(self.spec.source.checksum)',
      message: 'source.url comes with source.checksum',
    },
  ],
})
export type CustomImageSpec = z.infer<typeof CustomImage.spec>
export type CustomImageStatus = z.infer<typeof CustomImage.status>
export type StoredCustomImage = Stored<CustomImageSpec, CustomImageStatus>

export const CustomImageView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    title: z.string(),
    state: z.enum(CUSTOM_IMAGE_STATES),
    state_detail: z.string(),
    size_gibibytes: z.int().describe('Minimum size of a boot storage created from it; 0 until it is online.'),
    source: z.strictObject({
      kind: z.enum(['url', 'storage', 'snapshot', 'backup', 'image']),
      url: z.string().nullable().describe('URL of the downloaded disk; null for any other source.'),
      id: z.string().nullable().describe('Storage, snapshot, backup or custom image that it is a copy of.'),
    }),
    template_id: z.string().describe('Id of the image, under the field name that operations use.'),
    labels: z.record(z.string(), z.string()),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'CustomImage' })
export type CustomImageView = z.infer<typeof CustomImageView>

function sourceViewOf(source: CustomImageSpec['source']): CustomImageView['source'] {
  const field = SOURCES.find((one) => source[one] !== undefined) ?? 'url' // the stored kind ensures that there is one
  if (field === 'url') return { kind: 'url', url: source.url ?? null, id: null }
  const kinds = { storageId: 'storage', snapshotId: 'snapshot', backupId: 'backup', imageId: 'image' } as const
  return { kind: kinds[field], url: null, id: source[field] ?? null }
}

export const toCustomImageView = (image: StoredCustomImage): CustomImageView => ({
  id: image.name,
  zone: image.spec.zone,
  title: image.spec.title,
  state: stateOf(image),
  state_detail: image.status?.stateDetail ?? '',
  size_gibibytes: image.status?.sizeGibibytes ?? 0,
  source: sourceViewOf(image.spec.source),
  template_id: image.name,
  labels: image.spec.labels,
  active_operation: operationViewOf(image),
  created_at: image.createdAt,
})

function operationViewOf(image: StoredCustomImage): CustomImageView['active_operation'] {
  const operation = activeOperationOf(image)
  return operation === undefined ? null : toOperationView(operation, namedTarget('template', image))
}

const stateOf = ({ isDeleting, status }: StoredCustomImage): CustomImageView['state'] =>
  isDeleting ? 'deleting' : (status?.state ?? 'creating')

export function customImageFactsOf(image: StoredCustomImage): CustomImageFacts {
  const operation = activeOperationOf(image)
  return {
    id: image.name,
    state: stateOf(image),
    activeOperation: operation === undefined ? undefined : { id: operation.id, kind: operation.kind },
  }
}

interface ImageFacts {
  readonly metadata: { readonly deletionTimestamp?: string | undefined }
  readonly spec: CustomImageSpec
  readonly status?: CustomImageStatus | undefined
}

/** Whether servers can be created from it. */
export const isUsableImage = ({ metadata, spec, status }: ImageFacts): boolean =>
  metadata.deletionTimestamp === undefined && spec.operation?.kind !== 'template.delete' && status?.state === 'online'

/** Whether it reads the snapshot or the backup, which must stay until the image is complete. */
export const isReading = (
  { metadata, spec, status }: ImageFacts,
  source: { readonly snapshotId: string } | { readonly backupId: string },
): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.state ?? 'creating') === 'creating' &&
  ('snapshotId' in source ? spec.source.snapshotId === source.snapshotId : spec.source.backupId === source.backupId)

export const CreateCustomImage = exactlyOneOf(
  z.strictObject({
    zone: ZoneName,
    title: Title.min(1),
    source_url: z
      .url({ protocol: /^https$/ })
      .max(TEMPLATE_URL_LENGTH_MAXIMUM)
      .optional()
      .describe('HTTPS URL on the public Internet of a raw or qcow2 disk. The disk must not depend on another file.'),
    checksum_sha256: z
      .string()
      .regex(CHECKSUM, 'must be 64 hex digits')
      .optional()
      .describe('SHA-256 of the file at source_url, in hex; required with source_url.'),
    source_storage_id: Id.nullish().describe(
      'Storage in the zone; its server must be stopped until the image is complete.',
    ),
    source_snapshot_id: Id.nullish().describe('Snapshot of a storage in the zone; its server may run.'),
    source_backup_id: Id.nullish().describe('Backup in the zone, including those of deleted storages.'),
    labels: Labels.default({}),
  }),
  ['source_url', 'source_storage_id', 'source_snapshot_id', 'source_backup_id'],
).meta({ id: 'CreateCustomImage' })
export type CreateCustomImage = z.infer<typeof CreateCustomImage>

const verbs = verbsOf({ path: '/v1/custom-images', noun: 'custom_image', view: CustomImageView })

export const listCustomImages = verbs.listWhole('list_custom_images', {
  summary: 'List custom images',
  description: 'All images, newest first.',
})

export const createCustomImage = verbs.create('create_custom_image', {
  summary: 'Create a custom image',
  description:
    'The platform downloads a file from the public Internet and accepts it when its checksum matches; it copies a ' +
    'storage, snapshot or backup unchanged. The operation succeeds when every node of the zone holds the image.',
  needs: 'standing',
  starts: ['template.create'],
  body: CreateCustomImage,
  example: {
    zone: 'eu-1a',
    title: 'Mine',
    source_url: 'https://images.example.com/disk.qcow2',
    checksum_sha256: EXAMPLE.checksum,
  },
  refuses: [400, 404, 409, 422, 503],
})

export const getCustomImage = verbs.read('get_custom_image', { summary: 'Get a custom image' })

export const updateCustomImage = verbs.change('update_custom_image', {
  summary: 'Update title or labels of a custom image',
  description: 'A JSON merge patch; labels replace all labels. With If-Match only that version is changed.',
  body: z.strictObject({ title: Title.min(1).optional(), labels: Labels.optional() }),
})

export const copyCustomImage = verbs.post('copy_custom_image', '/{id}/copy', {
  summary: 'Copy a custom image to another zone',
  description: 'The copy is a separate image with the same title and labels.',
  needs: 'standing',
  audit: 'custom_image.copy',
  starts: ['template.copy'],
  body: z.strictObject({ zone: ZoneName.describe('A zone other than that of the image.') }),
  example: { zone: 'eu-1b' },
  answers: { 202: z.strictObject({ custom_image: CustomImageView, operation: OperationView }) },
  refuses: [400, 404, 409, 422, 503],
})

export const deleteCustomImage = verbs.remove('delete_custom_image', {
  summary: 'Delete a custom image',
  description: 'Servers created from it keep working: their disks are copies.',
  starts: ['template.delete'],
})

export const CUSTOM_IMAGE_ROUTES = [
  listCustomImages,
  createCustomImage,
  getCustomImage,
  updateCustomImage,
  copyCustomImage,
  deleteCustomImage,
] as const

export const managedCustomImage = managed({
  noun: 'custom_image',
  view: CustomImageView,
  routes: { list: listCustomImages, create: createCustomImage, read: getCustomImage, remove: deleteCustomImage },
  names: ['title'],
  changes: [{ by: updateCustomImage, sets: ['title', 'labels'] }],
  fields: {
    // shown as its source
    source_url: { shows: 'nothing' },
    checksum_sha256: { shows: 'nothing' },
    source_storage_id: { shows: 'nothing', refers: 'storage' },
    source_snapshot_id: { shows: 'nothing', refers: 'snapshot' },
    source_backup_id: { shows: 'nothing', refers: 'backup' },
  },
  facts: ['id', 'size_gibibytes', 'source', 'template_id', 'created_at'],
  moments: ['state', 'state_detail', 'active_operation'],
})
