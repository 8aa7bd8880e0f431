/** The platform's object storage, from the settings. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Clock } from '../../kit/sys/clock.ts'
import { readPemFile, readSecretFile } from '../../kit/sys/secret-file.ts'
import { type ObjectStorage, openControl } from './control.ts'
import { openConnections, openExchange, type StoreConnections } from '../../kit/s3/exchange.ts'
import { openGateway } from './rgw.ts'
import { openS3 } from './s3.ts'
import type { ObjectStorageSettings } from './settings.ts'

/** The configured object storage. */
export interface ObjectStorageOffer {
  readonly stores: readonly ObjectStorage[]
  /** Why zones without object storage have none, for people. */
  readonly obstacle: string
}

const NOT_CONFIGURED =
  'this cloud has none configured (SVCCLOUD_OBJECT_STORAGE_CONTROL_URL for one of one host, SVCCLOUD_RGW_FILE for Ceph)'

const Zones = z.array(z.string().min(1)).min(1)
/** `{zone}` stands for the name of the zone. */
const Endpoint = z.string().regex(/^https?:\/\/[^/]+$/)
const Gateways = z
  .array(
    z
      .strictObject({
        zones: Zones,
        endpoint: Endpoint,
        /** URL of Admin Ops, and of S3 for the platform itself. */
        admin_url: z.url({ protocol: /^https?$/ }),
        /** PEM of the authority of both certificates. */
        certificate_authority: z.string().includes('BEGIN CERTIFICATE').nullable().default(null),
        /** Credentials of a user with the capabilities `users=*` and `buckets=read`. */
        access_key_id: z.string().min(1),
        secret_access_key: z.string().min(1),
        /** Number of hosts with a copy of each object. */
        copies: z.int().min(1).max(16),
        /** Its certificate also contains `archive.internal`, and the hosts of its zones relay archives of databases to
         *  it. */
        takes_archives: z.boolean().default(false),
      })
      .refine(
        ({ takes_archives, certificate_authority }) => !takes_archives || certificate_authority !== null,
        'a gateway that takes archives says who signed its certificate: machines of databases trust nobody else',
      ),
  )
  .refine((gateways) => isDisjoint(gateways.flatMap(({ zones }) => zones)), 'a zone has one gateway')

const isDisjoint = (zones: readonly string[]): boolean => new Set(zones).size === zones.length

/** Throws for incomplete settings, and files that cannot be read. */
export async function openObjectStorage(settings: ObjectStorageSettings, clock: Clock): Promise<ObjectStorageOffer> {
  const { objectStorageObstacle: obstacle = NOT_CONFIGURED } = settings
  const [gateways, singles] = [await openGateways(settings, clock), await openSingle(settings, clock)]
  // With two, nobody would know which one has an archive.
  const both = gateways
    .filter(({ takesArchives }) => takesArchives)
    .flatMap(({ zones }) => zones.filter((zone) => singles.some((single) => single.zones.includes(zone))))
  if (both.length > 0)
    throw new Error(`archives of databases in zone ${both.join()} are on its single host: takes_archives must be false`)
  return { stores: [...gateways, ...singles], obstacle }
}

/** The store for archives of databases of the zone, or why there is none, for people. */
export function archivesIn(offer: ObjectStorageOffer, zone: string): ObjectStorage | { readonly obstacle: string } {
  const stores = offer.stores.filter(({ takesArchives }) => takesArchives)
  const served = offerIn({ ...offer, stores }, zone)
  if (!('obstacle' in served) || 'obstacle' in offerIn(offer, zone)) return served
  return { obstacle: 'its gateway does not take archives: takes_archives in SVCCLOUD_RGW_FILE' }
}

async function openSingle(settings: ObjectStorageSettings, clock: Clock): Promise<readonly ObjectStorage[]> {
  const {
    objectStorageControlUrl: url,
    objectStorageTokenFile: tokenFile,
    objectStorageEndpoint: endpoint,
    objectStorageAuthorityFile: authorityFile,
    objectStorageZones: zones = [],
  } = settings
  if (url === undefined) return []
  if (tokenFile === undefined || endpoint === undefined || authorityFile === undefined)
    throw new Error('object storage needs its token file, its endpoint and the file of its authority')
  const token = await readSecretFile(tokenFile)
  const deadline = (milliseconds: number) => {
    const over = new AbortController()
    return { signal: over.signal, cancel: clock.after(milliseconds, () => over.abort(new Error('no answer in time'))) }
  }
  const certificateAuthority = await readPemFile(authorityFile)
  const endpointOf = (zone: string) => endpoint.replaceAll('{zone}', zone)
  const single: ObjectStorage = {
    backend: 'svc-s3-single',
    takesArchives: true,
    durability: 'single_copy',
    zones,
    endpointOf,
    ...reachOf(endpointOf, certificateAuthority, clock),
    control: openControl({ url, token }, deadline),
  }
  return [single]
}

async function openGateways({ rgwFile: file }: ObjectStorageSettings, clock: Clock): Promise<readonly ObjectStorage[]> {
  if (file === undefined) return []
  const gateways = Gateways.safeParse(await readJson(file))
  if (!gateways.success) throw new Error(`${file}: ${z.prettifyError(gateways.error)}`)
  return gateways.data.map(
    (gateway): ObjectStorage => ({
      ...reachOf(() => gateway.admin_url, gateway.certificate_authority, clock),
      backend: 'rgw',
      takesArchives: gateway.takes_archives,
      durability: gateway.copies >= 3 ? 'replicated' : gateway.copies === 2 ? 'degraded' : 'single_copy',
      zones: gateway.zones,
      endpointOf: (zone) => gateway.endpoint.replaceAll('{zone}', zone),
      control: openGateway({
        url: gateway.admin_url,
        authority: gateway.certificate_authority,
        credentials: { accessKeyId: gateway.access_key_id, secretAccessKey: gateway.secret_access_key },
        clock,
      }),
    }),
  )
}

/** Access of the platform itself to the store's S3. */
const reachOf = (
  urlOf: (zone: string) => string,
  certificateAuthority: string | null,
  clock: Clock,
): Pick<ObjectStorage, 'certificateAuthority' | 'openS3' | 'upstreamOf'> => {
  const upstreamOf = (zone: string) => ({ url: urlOf(zone), authority: certificateAuthority })
  /** By URL. */
  const opened = new Map<string, StoreConnections>()
  const connectionsTo = (address: ReturnType<typeof upstreamOf>): StoreConnections => {
    const connections = opened.get(address.url) ?? openConnections(address)
    opened.set(address.url, connections)
    return connections
  }
  return {
    certificateAuthority,
    openS3: (zone, credentials) => {
      const address = upstreamOf(zone)
      return openS3(openExchange({ ...address, credentials, clock, connections: connectionsTo(address) }))
    },
    upstreamOf,
  }
}

/** Error messages never contain the file's content, which is secret. */
async function readJson(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8')
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${file} is not JSON`)
  }
}

/** The store for new tenants of the zone, or for those of the backend, or why there is none, for people. A gateway has
 *  priority over a single host. */
export function offerIn(
  { stores, obstacle }: ObjectStorageOffer,
  zone: string,
  backend?: ObjectStorage['backend'],
): ObjectStorage | { readonly obstacle: string } {
  const ofBackend = stores.filter((store) => backend === undefined || store.backend === backend)
  const there = ofBackend.filter(({ zones }) => zones.includes(zone))
  const served = there.find((store) => store.backend === 'rgw') ?? there[0]
  if (served !== undefined) return served
  return { obstacle: stores.length === 0 ? obstacle : `none is configured for zone ${zone}` }
}
