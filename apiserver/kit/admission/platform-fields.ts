/** Fields that only the platform writes into an object. Anybody who could write them could act in another's name, or
 *  make the platform forget what it holds. */
import { isDeepStrictEqual } from 'node:util'
import { forbidden } from '../../../domain/problem.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'

export interface PlatformFields {
  /** The kind, as people call it. */
  readonly noun: string
  readonly finalizer: string
  /** Completes the sentence "The finalizer goes when". */
  readonly goesWhen: string
}

/** Throws 403 for another operation stanza, another note of the last change, and a removed finalizer. `before` is
 *  undefined for an object that is being created. */
export function denyPlatformFields(
  object: KubeObject,
  before: KubeObject | undefined,
  { noun, finalizer, goesWhen }: PlatformFields,
): void {
  if (!isDeepStrictEqual(stanzaOf(object), stanzaOf(before)))
    throw forbidden(`spec.operation is written by the platform only: change the ${noun}, and the operation follows.`)
  if (noteOf(object) !== noteOf(before))
    throw forbidden(`The annotation ${LAST_CHANGE_ANNOTATION} is written by the platform only.`)
  const isHeld = (some: KubeObject | undefined): boolean => some?.metadata.finalizers?.includes(finalizer) ?? false
  if (isHeld(before) && !isHeld(object)) throw forbidden(`The finalizer goes when ${goesWhen}.`)
}

const stanzaOf = (object: KubeObject | undefined): unknown =>
  (object?.spec as { readonly operation?: unknown } | undefined)?.operation // kinds without operations have none
const noteOf = (object: KubeObject | undefined): string | undefined =>
  object?.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
