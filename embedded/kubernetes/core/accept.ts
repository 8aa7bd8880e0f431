/** Content negotiation: chooses the representation of the response. */
import { MEDIA_TYPES, notAcceptable } from './status.ts'

export interface Representation {
  readonly as?: 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList' | 'APIGroupDiscoveryList'
  readonly group?: string
  readonly version?: string
}

const VERSIONS: Readonly<Record<NonNullable<Representation['as']>, readonly string[]>> = {
  Table: ['v1', 'v1beta1'],
  PartialObjectMetadata: ['v1', 'v1beta1'],
  PartialObjectMetadataList: ['v1', 'v1beta1'],
  APIGroupDiscoveryList: ['v2', 'v2beta1'],
}

/** The first acceptable entry of an Accept header, among the transformations in `offered`. */
export function negotiate(
  accept: string | undefined,
  offered: readonly NonNullable<Representation['as']>[],
): Representation {
  if (accept === undefined || accept.trim() === '') return {}
  for (const entry of accept.split(',')) {
    const [type = '', ...parameters] = entry.split(';').map((part) => part.trim())
    if (type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue
    const named: Readonly<Record<string, string | undefined>> = Object.fromEntries(
      parameters.map((parameter) => parameter.split('=')),
    )
    const { as, g: group = '', v: version = '' } = named
    if (as === undefined) return {}
    const known = offered.find((candidate) => candidate === as)
    if (known && VERSIONS[known].includes(version)) return { as: known, group, version }
  }
  throw notAcceptable(MEDIA_TYPES)
}
