/** Tenants with real engines, without the proxy before them, for tests of what keeps them apart. */
import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type EngineKey, SIGNING_REGION } from '../../../embedded/object-storage/engine.ts'
import { type EnginesOptions, openEngines } from '../../../embedded/object-storage/engines.ts'
import { findEngine } from '../../../embedded/object-storage/program.ts'
import { openCells } from '../../../embedded/object-storage/cells.ts'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import { newTenantKeys, type TenantKeys } from '../../../integrations/object-storage/keys.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

export async function openTestEngines(more: Partial<EnginesOptions> = {}, registry?: string) {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-cells-'))
  const parts = { clock: systemClock, random: systemRandom, log: silentLog }
  const cells = await openCells({
    ...parts,
    folder,
    registry: registry ?? join(folder, 'registry'),
    program: (await findEngine()) ?? 'versitygw',
  })
  const engines = openEngines({ ...parts, cells: cells.cells, liveMaximum: 16, ...more })
  onTestFinished(async () => {
    await engines.stop()
    await rm(folder, { recursive: true })
  })
  return {
    ...cells,
    folder,
    engines,
    /** With a separate bucket, whose name is the prefix and `a`. */
    async open(id: string): Promise<TestTenant> {
      const keys = newTenantKeys(systemRandom)
      await engines.tell({ id, ...keys }, keys.secretAccessKey)
      await engines.ensureBucket(id, `${keys.bucketPrefix}a`)
      return { id, ...keys, bucket: `${keys.bucketPrefix}a` }
    },
    /** Past the proxy, to the engine itself. */
    async send(tenant: TestTenant, asked: Asked): Promise<Answer> {
      const held = await engines.hold(tenant.id)
      try {
        return await sendTo(held.socketPath, tenant, asked)
      } finally {
        held.release()
      }
    },
  }
}

export interface TestTenant extends TenantKeys {
  readonly id: string
  readonly bucket: string
}

export interface Asked {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** As in the request line. */
  readonly target: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly text: string
}

/** To the engine whose socket it is. */
export function sendTo(
  socketPath: string,
  key: EngineKey,
  { method, target, body = '', headers = {} }: Asked,
): Promise<Answer> {
  const bytes = Buffer.from(body)
  // Nobody tidies the path up before it is signed.
  const [pathname = '', search = ''] = target.split('?')
  const url = { pathname, search: search === '' ? '' : `?${search}`, host: 'localhost' } as URL
  const signed = signRequest({ method, url, body: bytes, headers }, { ...key, region: SIGNING_REGION }, new Date())
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { socketPath, method, path: target, agent: false, headers: { ...signed, host: 'localhost' } },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text })).once('error', reject)
      },
    )
    request.once('error', reject).end(bytes)
  })
}
