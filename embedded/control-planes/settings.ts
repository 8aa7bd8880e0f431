/** What the processes of an embedded cloud have to know to have control planes: made at every start from its
 *  folder. */
import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { environment } from '../../kit/sys/process.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { probePort } from '../ports.ts'
import { LOOPBACK } from '../../kit/control-planes/hosting/credentials.ts'

type Settings = Readonly<Record<string, string>>

export interface ControlPlanesChoice {
  readonly folder: string
  /** That the API listens on; endpoints of clusters do too. */
  readonly host: string
  readonly regions: readonly string[]
  readonly random: Random
  /** Of the platform, as this machine reaches it. */
  readonly apiUrl: string
  /** Where nodes reach them; absent where they do not. */
  readonly nodes?: NodesDoor | undefined
}

/** As the network of the cloud has it: what comes to these ports of the address goes to the socket. */
interface NodesDoor {
  readonly address: string
  readonly firstPort: number
  readonly ports: number
  readonly socket: string
}

export interface ControlPlanesSettings {
  /** Of its own process. */
  readonly process: Settings
  /** Of who offers it. */
  readonly platform: Settings
}

const TOKEN_CHARACTERS = 43
/** Of the path of a socket, as the kernel takes them. */
const SOCKET_BYTES_MAXIMUM = 107

/** Where connections of nodes come in, below the folder; undefined where the path would be too long. */
export function nodesSocketIn(folder: string): string | undefined {
  const path = join(folder, 'nodes.sock')
  return Buffer.byteLength(path) > SOCKET_BYTES_MAXIMUM ? undefined : path
}
const MEBIBYTE = 1024 ** 2
/** Guests take the rest. */
const SHARE_OF_MEMORY = 0.25

/** What is in playgrounds is served on: the one that is asked for, or any. */
const appsPort = (host: string): Promise<number> =>
  probePort(host, Number(environment()['SVCCLOUD_PLAYGROUNDS_PORT'] ?? 0))

export async function prepareControlPlanes(choice: ControlPlanesChoice): Promise<ControlPlanesSettings> {
  const { folder, host, regions, random, apiUrl, nodes } = choice
  await makeFolder(folder, 0o700)
  const tokenFile = join(folder, 'token')
  const token = await readFile(tokenFile, 'utf8').catch(() => '')
  if (token.length < TOKEN_CHARACTERS) await writeDurably(tokenFile, newBase62(random, TOKEN_CHARACTERS))
  const controlPort = await probePort(LOOPBACK, 0)
  const memory =
    environment()['SVCCLOUD_CONTROL_PLANES_MEMORY_MEBIBYTES'] ??
    String(Math.floor((totalmem() * SHARE_OF_MEMORY) / MEBIBYTE))
  return {
    process: {
      SVCCLOUD_DATA: folder,
      SVCCLOUD_HOST: host,
      SVCCLOUD_CONTROL_PORT: String(controlPort),
      SVCCLOUD_MEMORY_MEBIBYTES: memory,
      SVCCLOUD_API_URL: apiUrl,
      SVCCLOUD_PLAYGROUNDS_PORT: String(await appsPort(host)),
      ...(nodes === undefined
        ? {}
        : {
            SVCCLOUD_NODES_ADDRESS: nodes.address,
            SVCCLOUD_NODES_SOCKET: nodes.socket,
            SVCCLOUD_NODES_PORTS: `${nodes.firstPort}+${nodes.ports}`,
          }),
    },
    platform: {
      SVCCLOUD_CONTROL_PLANES_URL: `http://${LOOPBACK}:${controlPort}`,
      SVCCLOUD_CONTROL_PLANES_TOKEN_FILE: tokenFile,
      SVCCLOUD_CONTROL_PLANES_REGIONS: regions.join(','),
    },
  }
}
