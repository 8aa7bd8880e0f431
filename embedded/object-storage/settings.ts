/** Settings of the processes of an embedded cloud with object storage, derived at every start from its folder. */
import { join } from 'node:path'
import type { z } from 'zod'
import { ARCHIVE_HOST } from '../../integrations/object-storage/archive.ts'
import type { ObjectStorageSettings as PlatformSettings } from '../../integrations/object-storage/settings.ts'
import { readIfThere, writeDurably } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { probePort, takePort } from '../kit/ports.ts'
import type { ObjectStorageSettings as ProcessSettings } from '../kit/process-settings.ts'

export interface ObjectStorageChoice {
  readonly folder: string
  /** Path of the engine. */
  readonly program: string
  /** Address on which the API listens. */
  readonly host: string
  /** 0 selects the port of the last start, or a free one. */
  readonly port: number
  /** Name of the machine for clients; `{zone}` is replaced by the zone. Default: the result of `reachable`. */
  readonly name: string | undefined
  readonly zones: readonly string[]
  /** URL of the portal, whose pages upload objects. */
  readonly portalUrl: string
  readonly random: Random
}

export interface SupervisorSettings {
  /** Settings of its process. */
  readonly process: z.input<typeof ProcessSettings>
  /** Settings of the platform. */
  readonly platform: PlatformSettings
  /** Settings of the hosts, which relay archives of databases to it. */
  readonly agent: { readonly archiveAddress: string }
  readonly port: number
}

const LOOPBACK = '127.0.0.1'
const ANY = ['0.0.0.0', '::']
const TOKEN_CHARACTERS = 43
const CERTIFICATE_HOSTS = ['localhost', LOOPBACK, '::1', ARCHIVE_HOST]

/** Throws StartRefused when a requested port is in use. */
export async function prepareObjectStorage(choice: ObjectStorageChoice): Promise<SupervisorSettings> {
  const { folder, program, host, random, zones } = choice
  await makeFolder(folder, 0o711)
  const tokenFile = join(folder, 'token')
  if ((await readIfThere(tokenFile)) === undefined) await writeDurably(tokenFile, newBase62(random, TOKEN_CHARACTERS))
  const port = await choosePort(choice)
  const controlPort = await probePort(LOOPBACK, 0)
  const name = choice.name ?? (host === LOOPBACK || ANY.includes(host) ? 'localhost' : host)
  const hosts = [
    ...CERTIFICATE_HOSTS,
    ...(ANY.includes(host) || CERTIFICATE_HOSTS.includes(host) ? [] : [host]),
    ...zones.map((zone) => name.replaceAll('{zone}', zone)),
  ]
  return {
    port,
    process: {
      data: folder,
      engine: program,
      host,
      port,
      controlPort,
      hosts: [...new Set(hosts)],
      portalOrigin: new URL(choice.portalUrl).origin,
    },
    platform: {
      objectStorageControlUrl: `http://${LOOPBACK}:${controlPort}`,
      objectStorageTokenFile: tokenFile,
      objectStorageEndpoint: `https://${addressOf(name, port)}`,
      objectStorageAuthorityFile: join(folder, 'ca.crt'),
      objectStorageZones: [...zones],
    },
    agent: { archiveAddress: addressOf(ANY.includes(host) ? LOOPBACK : host, port) },
  }
}

const addressOf = (name: string, port: number): string => `${name.includes(':') ? `[${name}]` : name}:${port}`

/** The port stays the same as long as possible, because clients have it in their settings. */
async function choosePort({ folder, host, port }: ObjectStorageChoice): Promise<number> {
  const file = join(folder, 'port')
  const before = Number((await readIfThere(file)) ?? 0)
  const chosen =
    port === 0
      ? await probePort(host, before).catch(() => probePort(host, 0))
      : await takePort('object-storage-port', host, port)
  await writeDurably(file, String(chosen))
  return chosen
}
