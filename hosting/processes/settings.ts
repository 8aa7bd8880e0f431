/** Settings of the processes of an embedded cloud that has control planes: made at every start from its
 *  folder. */
import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { z } from 'zod'
import type { ControlPlanesSettings as PlatformSettings } from '../../integrations/control-planes/settings.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { probePort } from '../../embedded/kit/ports.ts'
import type { ControlPlanesSettings, NodesListener } from '../../embedded/kit/process-settings.ts'
import { LOOPBACK } from '../core/credentials.ts'

export interface ControlPlanesChoice {
  readonly folder: string
  /** That the API listens on; endpoints of clusters do too. */
  readonly host: string
  readonly regions: readonly string[]
  readonly random: Random
  /** Of the platform, as this machine reaches it. */
  readonly apiUrl: string
  /** Where nodes reach them; absent where they do not. */
  readonly nodesListener?: NodesListener | undefined
  /** A quarter of the memory of this machine when absent. */
  readonly memoryMebibytes?: number | undefined
  /** Where apps of playgrounds are served; 0 takes a free one. */
  readonly playgroundsPort?: number
}

export interface PreparedControlPlanes {
  /** Of its own process. */
  readonly process: z.input<typeof ControlPlanesSettings>
  /** Of who offers it. */
  readonly platform: PlatformSettings
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

export async function prepareControlPlanes(choice: ControlPlanesChoice): Promise<PreparedControlPlanes> {
  const { folder, host, regions, random, apiUrl, nodesListener } = choice
  await makeFolder(folder, 0o700)
  const tokenFile = join(folder, 'token')
  const token = await readFile(tokenFile, 'utf8').catch(() => '')
  if (token.length < TOKEN_CHARACTERS) await writeDurably(tokenFile, newBase62(random, TOKEN_CHARACTERS))
  const controlPort = await probePort(LOOPBACK, 0)
  const { memoryMebibytes = Math.floor((totalmem() * SHARE_OF_MEMORY) / MEBIBYTE), playgroundsPort = 0 } = choice
  return {
    process: {
      data: folder,
      host,
      controlPort,
      memoryMebibytes,
      apiUrl,
      playgroundsPort: await probePort(host, playgroundsPort),
      nodesListener,
    },
    platform: {
      controlPlanesUrl: `http://${LOOPBACK}:${controlPort}`,
      controlPlanesTokenFile: tokenFile,
      controlPlanesRegions: [...regions],
    },
  }
}
