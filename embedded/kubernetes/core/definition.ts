/** Description of one resource in one version: the data that all handlers use. */
import type { Json } from './json.ts'
import type { KubeObject } from './object.ts'
import type { Cause } from './status.ts'
import type { Schema } from '../schema/schema.ts'

export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  /** Above 0: shown only with `-o wide`. */
  readonly priority?: number
  /** A JSONPath in the object, or a function for values that no path can express. */
  readonly cell: string | ((object: KubeObject, now: Date) => Json)
}

export interface ScalePaths {
  readonly specReplicasPath: string
  readonly statusReplicasPath: string
  readonly labelSelectorPath?: string
}

/** `record`: stored as data. `review`: answered at once, never stored. */
export type Storing = 'record' | 'review'

export interface Definition {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly singular: string
  readonly kind: string
  readonly listKind: string
  readonly isNamespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly storing: Storing
  readonly isCustom: boolean
  readonly hasStatus: boolean
  readonly scale?: ScalePaths
  readonly schema?: Schema
  readonly columns?: readonly Column[]
  /** JSONPaths such as `.spec.node` that field selectors may use, besides metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[]
  /** Whether metadata.generation counts the changes of the desired state. */
  readonly hasGeneration: boolean
  /** Storage key of objects of this resource: the same in every version. */
  readonly storageKey: string
  readonly storageVersion: string
  /** Warning in every response for a deprecated version. */
  readonly deprecation?: string
  readonly hooks: Hooks
}

export interface Preparing {
  readonly now: Date
  readonly subresource: string
}

/** Special behaviour of one kind. All functions are pure and optional. */
export interface Hooks {
  /** Sets the fields that the server determines: at every write, before validation. */
  readonly prepare?: (object: KubeObject, old: KubeObject | undefined, context: Preparing) => KubeObject
  readonly validate?: (object: KubeObject, old: KubeObject | undefined) => readonly Cause[]
  /** Converts between the stored form and this version, if they differ in more than apiVersion. */
  readonly fromStored?: (object: KubeObject) => KubeObject
  readonly toStored?: (object: KubeObject) => KubeObject
  /** Finalizers that a deletion adds to the object. */
  readonly holdsOnDelete?: readonly string[]
  /** Keeps a deleted object although its metadata have no finalizers. */
  readonly isHeld?: (object: KubeObject) => boolean
  /** Objects of this kind are deleted this long after their last change. */
  readonly keepsSeconds?: number
}

export const groupVersionOf = ({ group, version }: { readonly group: string; readonly version: string }): string =>
  group === '' ? version : `${group}/${version}`

/** Splits `g/v` or `v`. */
export function parseGroupVersion(text: string): { readonly group: string; readonly version: string } {
  const slash = text.indexOf('/')
  return slash < 0 ? { group: '', version: text } : { group: text.slice(0, slash), version: text.slice(slash + 1) }
}

/** The stored object in the form of this version. */
export function inVersion(definition: Definition, object: KubeObject): KubeObject {
  const apiVersion = groupVersionOf(definition)
  if (definition.hooks.fromStored) return definition.hooks.fromStored(object)
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion }
}

/** The object in the stored form. */
export function asStored(definition: Definition, object: KubeObject): KubeObject {
  if (definition.hooks.toStored) return definition.hooks.toStored(object)
  const apiVersion = groupVersionOf({ group: definition.group, version: definition.storageVersion })
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion }
}

export const supportedVerbs = (definition: Definition): readonly string[] =>
  definition.storing === 'review'
    ? ['create']
    : definition.isCustom
      ? ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
      : ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

const SUBRESOURCES: Readonly<Record<string, readonly string[]>> = {
  '/namespaces': ['finalize'],
  '/serviceaccounts': ['token'],
}

/** The paths below an object of the resource. */
export const subresourcesOf = (definition: Definition): readonly string[] => [
  ...(definition.hasStatus ? ['status'] : []),
  ...(definition.scale ? ['scale'] : []),
  ...(SUBRESOURCES[definition.storageKey] ?? []),
]
