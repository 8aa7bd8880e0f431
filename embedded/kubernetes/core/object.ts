/** The common structure of all stored objects. */
import { asObject, type Json, type JsonObject } from './json.ts'

export interface OwnerReference extends JsonObject {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ManagedFieldsEntry extends JsonObject {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly time?: string
  readonly fieldsType: 'FieldsV1'
  readonly fieldsV1: JsonObject
  readonly subresource?: string
}

export interface Metadata extends JsonObject {
  readonly name: string
  readonly generateName?: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation?: number
  readonly creationTimestamp: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly ManagedFieldsEntry[]
}

export interface KubeObject extends JsonObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Metadata
}

/** The user of a request. `system:masters` in `groups` has all rights. */
export interface User {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** A copy with some metadata replaced; a member that is undefined is removed. */
export function withMetadata(
  object: KubeObject,
  changes: { readonly [Key in keyof Metadata]?: Metadata[Key] | undefined },
): KubeObject {
  const metadata: Record<string, Json | undefined> = { ...object.metadata, ...changes }
  for (const key in changes) if (changes[key] === undefined) delete metadata[key]
  // The spread keeps every required member, because no caller removes one.
  return { ...object, metadata: metadata as Metadata }
}

/** Reads metadata of an object that was not checked yet. */
export const looseMetadata = (object: JsonObject): JsonObject => asObject(object.metadata)
