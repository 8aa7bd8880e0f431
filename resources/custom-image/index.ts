/** Custom images: disks that an account makes servers from. Stored shape, public shape, the bridge and the routes. */
import { z } from 'zod'
import type { CustomImageFacts } from '../../domain/custom-image/rules.ts'
import { exactlyOneOf, fixed, resource } from '../kit/define.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { activeOperationOf, OperationView, toOperationView } from '../operation/index.ts'
import {
  Conditions,
  DateTime,
  Id,
  Labels,
  ObservedGeneration,
  Printable,
  ReportedOperation,
  RequestedOperation,
  type Stored,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'

export const CUSTOM_IMAGE_STATES = ['creating', 'online', 'error', 'deleting'] as const
const URL_LENGTH_MAXIMUM = 2_048
const CHECKSUM = /^[0-9a-fA-F]{64}$/
const SOURCES = ['url', 'storageId', 'snapshotId', 'backupId', 'imageId'] as const

export const CustomImage = resource({
  kind: 'CustomImage',
  plural: 'customimages',
  shortNames: ['cimg'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A disk that servers of the account can be made from, held by every node of its zone: a file from the Internet, ' +
    'compared with its checksum, a copy of the storage of a stopped server, of a snapshot or of a backup, or an ' +
    'image of another zone. Servers that were made from it keep working when it is deleted.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone whose servers can be made from it. Cannot be changed.'),
      title: z.string().max(255).describe('One line of free text for people.'),
      source: z
        .strictObject({
          url: z
            .string()
            .max(URL_LENGTH_MAXIMUM)
            .regex(/^https:\/\//)
            .optional()
            .describe('A raw or qcow2 disk on the public Internet, by https.'),
          checksum: z.string().max(64).regex(CHECKSUM).optional().describe('SHA-256 of the file at url, in hex.'),
          storageId: z
            .string()
            .max(253)
            .optional()
            .describe('Storage of the zone that it becomes a copy of, while no server that runs has that.'),
          snapshotId: z.string().max(253).optional().describe('Snapshot of the zone that it becomes a copy of.'),
          backupId: z.string().max(253).optional().describe('Backup in the zone that it is read from.'),
          imageId: z.string().max(253).optional().describe('Custom image of another zone that it becomes a copy of.'),
        })
        .describe(
          'Where the disk comes from: exactly one of url, storageId, snapshotId, backupId and imageId. Cannot be ' +
            'changed.',
        ),
      labels: StoredLabels.default({}).describe('Labels of the API.'),
      operation: RequestedOperation,
    })
    .describe('What the image is made of.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(CUSTOM_IMAGE_STATES).describe('What the image is doing now, as the API shows it.'),
      stateDetail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      sizeGibibytes: z.int().min(0).optional().describe('Least size of a boot storage that is made from it, in GiB.'),
      minMemoryMebibytes: z
        .int()
        .min(1)
        .optional()
        .describe('Least memory of a server that is made from it, where that is known.'),
      origin: z
        .strictObject({
          name: z.string().max(253).describe('Name of the template.'),
          version: z.string().max(253).describe('Version of its image.'),
        })
        .optional()
        .describe('The version of a template that its data began as. Guests boot the kernel of that version.'),
      operation: ReportedOperation,
    })
    .describe('What the image is. Written by its controller.'),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.title' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone'],
  rules: [
    ...['zone', 'source'].map(fixed),
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
    size_gibibytes: z.int().describe('Least size of a boot storage that is made from it; 0 until it is online.'),
    source: z.strictObject({
      kind: z.enum(['url', 'storage', 'snapshot', 'backup', 'image']),
      url: z.string().nullable().describe('Where the disk was fetched; null unless that is what it was made from.'),
      id: z.string().nullable().describe('Storage, snapshot, backup or custom image that it is a copy of.'),
    }),
    template_id: z.string().describe('As operations name the image: its id.'),
    labels: z.record(z.string(), z.string()),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'CustomImage' })
export type CustomImageView = z.infer<typeof CustomImageView>

function sourceViewOf(source: CustomImageSpec['source']): CustomImageView['source'] {
  const field = SOURCES.find((one) => source[one] !== undefined) ?? 'url' // the kind itself keeps that there is one
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
  return operation === undefined ? null : toOperationView(operation, { type: 'template', id: image.name })
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

/** Servers can be made from it. */
export const isUsableImage = ({
  metadata,
  spec,
  status,
}: {
  readonly metadata: { readonly deletionTimestamp?: string | undefined }
  readonly spec: CustomImageSpec
  readonly status?: CustomImageStatus | undefined
}): boolean =>
  metadata.deletionTimestamp === undefined && spec.operation?.kind !== 'template.delete' && status?.state === 'online'

/** Whether it reads the snapshot or the backup, which stays until it is made. */
export const isReading = (
  {
    metadata,
    spec,
    status,
  }: {
    readonly metadata: { readonly deletionTimestamp?: string | undefined }
    readonly spec: CustomImageSpec
    readonly status?: CustomImageStatus | undefined
  },
  source: { readonly snapshotId: string } | { readonly backupId: string },
): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.state ?? 'creating') === 'creating' &&
  ('snapshotId' in source ? spec.source.snapshotId === source.snapshotId : spec.source.backupId === source.backupId)

export const CreateCustomImage = exactlyOneOf(
  z.strictObject({
    zone: ZoneName,
    title: Printable.min(1).max(255),
    source_url: z
      .url({ protocol: /^https$/ })
      .max(URL_LENGTH_MAXIMUM)
      .optional()
      .describe('A raw or qcow2 disk on the public Internet, by https; it may depend on no other file.'),
    checksum_sha256: z
      .string()
      .regex(CHECKSUM, 'must be 64 hex digits')
      .optional()
      .describe('SHA-256 of the file at source_url, in hex; needed with that.'),
    source_storage_id: Id.nullish().describe('Storage of the zone; its server is stopped until the image is made.'),
    source_snapshot_id: Id.nullish().describe('Snapshot of a storage of the zone; its server may run.'),
    source_backup_id: Id.nullish().describe('Backup in the zone, also of a storage that is deleted.'),
    labels: Labels.default({}),
  }),
  ['source_url', 'source_storage_id', 'source_snapshot_id', 'source_backup_id'],
).meta({ id: 'CreateCustomImage' })
export type CreateCustomImage = z.infer<typeof CreateCustomImage>

const verbs = verbsOf({ path: '/v1/custom-images', area: 'Custom images', noun: 'custom_image', view: CustomImageView })

export const listCustomImages = verbs.listWhole('list_custom_images', {
  summary: 'List custom images',
  description: 'All of them, newest first.',
})

export const createCustomImage = verbs.create('create_custom_image', {
  summary: 'Make a custom image',
  description:
    'A file is fetched from the public Internet and taken when its checksum is right; a storage, snapshot or backup ' +
    'is copied as it is. ' +
    'The operation succeeds when every node of the zone holds the image.',
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

export const getCustomImage = verbs.read('get_custom_image', { summary: 'Read a custom image' })

export const updateCustomImage = verbs.change('update_custom_image', {
  summary: 'Change title or labels of a custom image',
  description: 'A JSON merge patch; labels replace all labels. With If-Match the change is made only to that version.',
  body: z.strictObject({ title: Printable.min(1).max(255).optional(), labels: Labels.optional() }),
})

export const copyCustomImage = verbs.post('copy_custom_image', '/{id}/copy', {
  summary: 'Copy a custom image to another zone',
  description: 'The copy is a separate image, with the same title and labels.',
  needs: 'standing',
  audit: 'custom_image.copy',
  starts: ['template.copy'],
  body: z.strictObject({ zone: ZoneName.describe('Another zone than that of the image.') }),
  example: { zone: 'eu-1b' },
  answers: { 202: z.strictObject({ custom_image: CustomImageView, operation: OperationView }) },
  refuses: [400, 404, 409, 422, 503],
})

export const deleteCustomImage = verbs.remove('delete_custom_image', {
  summary: 'Delete a custom image',
  description: 'Servers that were made from it keep working: their disks are copies.',
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
