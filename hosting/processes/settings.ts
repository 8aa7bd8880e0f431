/** Settings of the processes of an embedded cloud with control planes, derived at every start from its folder. */
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
  /** Address on which the API and the endpoints of clusters listen. */
  readonly host: string
  readonly regions: readonly string[]
  readonly random: Random
  /** Address of the platform's API for this machine. */
  readonly apiUrl: string
  /** How nodes reach control planes; absent when they cannot. */
  readonly nodesListener?: NodesListener | undefined
  /** Memory for control planes; default: a quarter of this machine's memory. */
  readonly memoryMebibytes?: number | undefined
  /** Port at which apps of playgrounds are served; 0 selects a free one. */
  readonly playgroundsPort?: number
}

export interface PreparedControlPlanes {
  /** Settings of the host process. */
  readonly process: z.input<typeof ControlPlanesSettings>
  /** Settings of the platform. */
  readonly platform: PlatformSettings
}

const TOKEN_CHARACTERS = 43
/** Limit of the kernel for the path of a socket. */
const SOCKET_BYTES_MAXIMUM = 107

/** Socket for connections of nodes, below the folder; undefined when the path would be too long. */
export function nodesSocketIn(folder: string): string | undefined {
  const path = join(folder, 'nodes.sock')
  return Buffer.byteLength(path) > SOCKET_BYTES_MAXIMUM ? undefined : path
}
const MEBIBYTE = 1024 ** 2
/** Guests use the rest. */
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
