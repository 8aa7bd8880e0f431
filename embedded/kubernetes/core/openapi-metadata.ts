/** The schema of metadata, with descriptions for people. */
import type { Schema } from '../schema/schema.ts'

const text = (description: string): Schema => ({ type: 'string', description })
const time = (description: string): Schema => ({ type: 'string', format: 'date-time', description })
const textMap = (description: string): Schema => ({
  type: 'object',
  description,
  additionalProperties: { type: 'string' },
})

export const METADATA_SCHEMA: Schema = {
  type: 'object',
  description: 'What every stored object has: its name, its labels, and what the server records about it.',
  properties: {
    name: text('Unique among objects of this kind in their namespace. Cannot be changed.'),
    generateName: text('The beginning of a name that the server completes when name is empty.'),
    namespace: text('The space within which the name is unique. Cannot be changed.'),
    labels: textMap('Keys and values to select and group objects by.'),
    annotations: textMap('Keys and values that tools keep with the object. They cannot be selected by.'),
    uid: text('Unique over all objects of all times. Set by the server.'),
    resourceVersion: text('Changes with every write; clients pass it back unread to detect conflicts.'),
    generation: {
      type: 'integer',
      format: 'int64',
      description: 'Counts the changes of the desired state. Set by the server.',
    },
    creationTimestamp: time('When the server created the object.'),
    deletionTimestamp: time('When deletion was requested. The object is removed when it has no finalizers.'),
    deletionGracePeriodSeconds: {
      type: 'integer',
      format: 'int64',
      description: 'How long the object may take to end by itself.',
    },
    finalizers: {
      type: 'array',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'set',
      description: 'Must be empty before a deleted object goes.',
    },
    ownerReferences: {
      type: 'array',
      description: 'The objects this one depends on; when all of them are deleted, it is deleted.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      items: {
        type: 'object',
        required: ['apiVersion', 'kind', 'name', 'uid'],
        'x-kubernetes-map-type': 'atomic',
        properties: {
          apiVersion: text('API version of the owner.'),
          kind: text('Kind of the owner.'),
          name: text('Name of the owner.'),
          uid: text('UID of the owner.'),
          controller: { type: 'boolean', description: 'This owner manages the object.' },
          blockOwnerDeletion: {
            type: 'boolean',
            description: 'The owner cannot go in foreground deletion before this object.',
          },
        },
      },
    },
    managedFields: {
      type: 'array',
      'x-kubernetes-list-type': 'atomic',
      description: 'Which manager set which fields.',
      items: {
        type: 'object',
        properties: {
          apiVersion: text('The version in which the fields are named.'),
          fieldsType: text('Always FieldsV1.'),
          fieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          manager: text('Who manages the fields.'),
          operation: text('Apply or Update.'),
          subresource: text('The subresource through which the fields were written.'),
          time: time('When the fields last changed hands.'),
        },
      },
    },
    selfLink: text('No longer set.'),
  },
}
