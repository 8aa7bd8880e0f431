/** Which object storage the platform has, as the environment says. */
import { readFile } from 'node:fs/promises'
import type { Clock } from '../sys/clock.ts'
import { type ObjectStorage, openControl } from './control.ts'

/** Of every process that speaks to the object storage. */
export interface ObjectStorageEnvironment {
  /** Where tenants are managed. */
  readonly SVCCLOUD_OBJECT_STORAGE_CONTROL_URL?: string | undefined
  readonly SVCCLOUD_OBJECT_STORAGE_TOKEN_FILE?: string | undefined
  /** Where customers connect; `{zone}` stands for the name of the zone. */
  readonly SVCCLOUD_OBJECT_STORAGE_ENDPOINT?: string | undefined
  readonly SVCCLOUD_OBJECT_STORAGE_AUTHORITY_FILE?: string | undefined
  /** Comma separated. */
  readonly SVCCLOUD_OBJECT_STORAGE_ZONES?: string | undefined
  /** Why there is none, for people. */
  readonly SVCCLOUD_OBJECT_STORAGE_OBSTACLE?: string | undefined
}

/** What offers it, or why nothing does. */
export type ObjectStorageOffer = ObjectStorage | { readonly obstacle: string }

const NOT_CONFIGURED = 'this cloud is not told of any (SVCCLOUD_OBJECT_STORAGE_CONTROL_URL)'

/** Throws for settings that are half there, and files that cannot be read. */
export async function openObjectStorage(
  environment: ObjectStorageEnvironment,
  clock: Clock,
): Promise<ObjectStorageOffer> {
  const {
    SVCCLOUD_OBJECT_STORAGE_CONTROL_URL: url,
    SVCCLOUD_OBJECT_STORAGE_TOKEN_FILE: tokenFile,
    SVCCLOUD_OBJECT_STORAGE_ENDPOINT: endpoint,
    SVCCLOUD_OBJECT_STORAGE_AUTHORITY_FILE: authorityFile,
    SVCCLOUD_OBJECT_STORAGE_ZONES: zones = '',
    SVCCLOUD_OBJECT_STORAGE_OBSTACLE: obstacle = NOT_CONFIGURED,
  } = environment
  if (url === undefined) return { obstacle }
  if (tokenFile === undefined || endpoint === undefined || authorityFile === undefined)
    throw new Error('object storage needs its token file, its endpoint and the file of its authority')
  const token = (await readFile(tokenFile, 'utf8')).trim()
  const deadline = (milliseconds: number) => {
    const over = new AbortController()
    return { signal: over.signal, cancel: clock.after(milliseconds, () => over.abort(new Error('no answer in time'))) }
  }
  return {
    backend: 'svc-s3-single',
    zones: zones.split(',').filter((zone) => zone !== ''),
    endpointOf: (zone) => endpoint.replaceAll('{zone}', zone),
    certificateAuthority: await readFile(authorityFile, 'utf8'),
    control: openControl({ url, token }, deadline),
  }
}

/** What serves the zone, or why nothing does, for people. */
export function offerIn(offer: ObjectStorageOffer, zone: string): ObjectStorageOffer {
  if ('obstacle' in offer) return offer
  return offer.zones.includes(zone) ? offer : { obstacle: `none is configured for zone ${zone}` }
}
