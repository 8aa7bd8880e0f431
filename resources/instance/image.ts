/** Image: the disk of a custom image as a node must hold it. */
import { z } from 'zod'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObjectStorageZone, ObservedGeneration } from '../kit/shapes.ts'
import { IsRemoved, MigrationSecretName, OperationId, Origin, Port } from './parts.ts'

export const IMAGE_GIBIBYTES_MAXIMUM = 1_024

export const Image = resource({
  kind: 'Image',
  plural: 'images',
  shortNames: ['img'],
  scope: 'Namespaced',
  description:
    'A disk image that this node must hold, so that volumes can begin as it. Made by the platform from a ' +
    'CustomImage or a Template; its name is the namespace of that, or `template`, and its name, joined by a dot. Its ' +
    'data come from url, volume, snapshot or backup, or else from another node, where copyFrom says.',
  spec: z
    .strictObject({
      image: z
        .strictObject({
          namespace: z.string().max(253).describe('Its namespace; empty for a Template.'),
          name: z.string().max(253).describe('Its name.'),
          uid: z.string().max(253).describe('Its uid.'),
        })
        .describe('CustomImage or Template that it holds the data of. Cannot be changed.'),
      url: z.string().max(2_048).optional().describe('Where the node fetches the file. Cannot be changed.'),
      checksum: z.string().length(64).optional().describe('SHA-256 of the file at url, in hex. Cannot be changed.'),
      maximumGibibytes: z
        .int()
        .min(1)
        .max(IMAGE_GIBIBYTES_MAXIMUM)
        .optional()
        .describe(
          `What the disk in the file at url may have, in GiB; ${IMAGE_GIBIBYTES_MAXIMUM} when absent. A larger disk ` +
            'waits for it to grow.',
        ),
      volume: z
        .string()
        .max(253)
        .optional()
        .describe('Volume of this node that it becomes a copy of while no guest has that open. Cannot be changed.'),
      snapshot: z
        .strictObject({
          name: z.string().max(63).describe('As it is named in the disk.'),
          volume: z.string().max(253).describe('The volume that it was taken of.'),
          pool: z
            .string()
            .max(63)
            .optional()
            .describe("The shared storage that the volume is on; this node's own disks when absent."),
        })
        .optional()
        .describe('Snapshot of a volume that it becomes a copy of. Cannot be changed.'),
      backup: z
        .strictObject({
          name: z.string().max(253).describe('Name of the Backup.'),
          sizeGibibytes: z.int().min(1).max(65_536).describe('Size of the disk in GiB.'),
          accountId: z.string().max(63).describe('The account whose part of the store is read.'),
          secretName: z.string().max(253).describe("Secret of this node's namespace with the account's key."),
          objectStorageZone: ObjectStorageZone,
        })
        .optional()
        .describe('Backup that it is read from. Cannot be changed.'),
      copyFrom: z
        .strictObject({
          id: OperationId,
          host: z.string().max(253).describe('Host that serves the image.'),
          port: Port.describe('Port on which it does.'),
          secretName: MigrationSecretName,
        })
        .optional()
        .describe('Where the image is read from, as soon as the other node serves it.'),
      origin: Origin.optional().describe(
        'Of data that another node held: the template that it began as. Guests boot the kernel of that version.',
      ),
      serve: z
        .strictObject({ id: OperationId, secretName: MigrationSecretName })
        .optional()
        .describe('Another node may read the image; status.serving says where.'),
    })
    .describe('What the node must hold. Written by the platform.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z
        .enum(['creating', 'ready', 'error', 'lost'])
        .describe(
          'Whether volumes can begin as it. What has failed is not tried again. lost: it was made of a disk and is ' +
            'missing now; the disk has changed since, and it is not made a second time.',
        ),
      detail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      sizeGibibytes: z.int().min(1).optional().describe('Least size of a volume that begins as it, in GiB.'),
      neededGibibytes: z
        .int()
        .min(1)
        .optional()
        .describe('Size of the disk in the file, in GiB, while that is more than spec.maximumGibibytes.'),
      origin: Origin.optional().describe('The version of a template that the data began as.'),
      serving: z
        .strictObject({
          id: OperationId,
          host: z.string().max(253).describe('Host on which it is read.'),
          port: Port.describe('Port on which it is read.'),
        })
        .optional()
        .describe('Where the image is served for spec.serve.'),
      isRemoved: IsRemoved,
    })
    .describe('What the node holds. Written by its agent.'),
  columns: [
    { name: 'Image', type: 'string', jsonPath: '.spec.image.name' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    { name: 'Detail', type: 'string', jsonPath: '.status.detail', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: ['image', 'url', 'checksum', 'volume', 'snapshot', 'backup'].map(fixed),
})
export type ImageSpec = z.infer<typeof Image.spec>
export type ImageStatus = z.infer<typeof Image.status>

/** The Image of a CustomImage on every node, or of a Template, which is in no namespace. */
export const imageName = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace === '' ? 'template' : namespace}.${name}`
