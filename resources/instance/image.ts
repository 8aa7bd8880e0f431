/** Image: the disk of a custom image that a node must hold. */
import { z } from 'zod'
import { resource } from '../kit/define.ts'
import { ObjectStorageZone } from '../kit/shapes.ts'
import { IsRemoved, MigrationSecretName, OperationId, Origin, Serving } from './parts.ts'
import { ObjectName, OBSERVED, Port, StoredDiskGibibytes } from '../kit/fields.ts'
import { AGE, STATE } from '../kit/columns.ts'

export const IMAGE_GIBIBYTES_MAXIMUM = 1_024

export const Image = resource({
  kind: 'Image',
  plural: 'images',
  shortNames: ['img'],
  scope: 'Namespaced',
  description:
    'A disk image that this node must hold, so that volumes can be created from it. The platform creates it from ' +
    'a CustomImage or a Template. Its name is the namespace of that object (`template` for a Template) and its ' +
    'name, joined by a dot. The data come from url, volume, snapshot or backup, or from another node as in ' +
    'copyFrom.',
  spec: z
    .strictObject({
      image: z
        .strictObject({
          namespace: ObjectName.describe('Namespace of the object; empty for a Template.'),
          name: ObjectName.describe('Its name.'),
          uid: ObjectName.describe('Its uid.'),
        })
        .describe('CustomImage or Template whose data it holds.'),
      url: z.string().max(2_048).optional().describe('URL from which the node downloads the file.'),
      checksum: z.string().length(64).optional().describe('SHA-256 of the file at url, in hex.'),
      maximumGibibytes: z
        .int()
        .min(1)
        .max(IMAGE_GIBIBYTES_MAXIMUM)
        .optional()
        .describe(
          `Maximum size of the disk in the file at url, in GiB; ${IMAGE_GIBIBYTES_MAXIMUM} when absent. A ` +
            'larger disk waits until this is raised.',
        ),
      volume: ObjectName.optional().describe('Volume of this node to copy while no guest has it open.'),
      snapshot: z
        .strictObject({
          name: z.string().max(63).describe('Name of the snapshot in the disk.'),
          volume: ObjectName.describe('Volume of the snapshot.'),
          pool: z.string().max(63).optional().describe("Shared storage of the volume; this node's disks when absent."),
        })
        .optional()
        .describe('Snapshot of a volume to copy.'),
      backup: z
        .strictObject({
          name: ObjectName.describe('Name of the Backup.'),
          sizeGibibytes: StoredDiskGibibytes.describe('Size of the disk in GiB.'),
          accountId: z.string().max(63).describe('Account whose part of the store is read.'),
          secretName: ObjectName.describe("Secret of this node's namespace with the account's key."),
          objectStorageZone: ObjectStorageZone,
        })
        .optional()
        .describe('Backup to read.'),
      copyFrom: z
        .strictObject({
          id: OperationId,
          host: ObjectName.describe('Host that serves the image.'),
          port: Port.describe('Port of that host.'),
          secretName: MigrationSecretName,
        })
        .optional()
        .describe('Source on the other node, as soon as that node serves the image.'),
      origin: Origin.optional().describe(
        'For data from another node: the template that it was created from. The guest boots the kernel of that ' +
          'version.',
      ),
      serve: z
        .strictObject({ id: OperationId, secretName: MigrationSecretName })
        .optional()
        .describe('Other node that may read the image; status.serving has the address.'),
    })
    .describe("Desired state of the node's data. Written by the platform."),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z
        .enum(['creating', 'ready', 'error', 'lost'])
        .describe(
          'Whether volumes can be created from it. A failed image is not tried again. lost: the copy of a disk ' +
            'is missing; it is not copied again, because the disk has changed since.',
        ),
      detail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      sizeGibibytes: z.int().min(1).optional().describe('Minimum size of a volume created from it, in GiB.'),
      neededGibibytes: z
        .int()
        .min(1)
        .optional()
        .describe('Size of the disk in the file, in GiB, when it exceeds spec.maximumGibibytes.'),
      origin: Origin.optional().describe('Template version that the data was created from.'),
      serving: Serving.optional().describe('Address at which the image is served for spec.serve.'),
      isRemoved: IsRemoved,
    })
    .describe("Observed state of the node's data. Written by its agent."),
  columns: [
    { name: 'Image', type: 'string', jsonPath: '.spec.image.name' },
    STATE,
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    { name: 'Detail', type: 'string', jsonPath: '.status.detail', priority: 1 },
    AGE,
  ],
  fixed: ['image', 'url', 'checksum', 'volume', 'snapshot', 'backup'],
})
export type ImageSpec = z.infer<typeof Image.spec>
export type ImageStatus = z.infer<typeof Image.status>

/** The Image of a CustomImage on every node, or of a Template, which has no namespace. */
export const imageName = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace === '' ? 'template' : namespace}.${name}`
