/** Attacks a store of objects from within: run by its test in a mount namespace of which only one folder can be
 *  written, and refuses to run anywhere else. Arguments: that folder, the program of the engine, which share of the
 *  attacks, whether they go through the `door` or `past` it, and whether engines run in their `cells` or in the `open`.
 *  Prints what happened as JSON. */
import { createHash } from 'node:crypto'
import { access, constants, lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import {
  Agent as PlainAgent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
} from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { basename, dirname, join } from 'node:path'
import { openCertificates } from '../../../../embedded/kubernetes/server/certificates.ts'
import { startObjectStorage } from '../../../../embedded/object-storage/start.ts'
import { probePort } from '../../../../embedded/kit/ports.ts'
import { signRequest } from '../../../../kit/chunks/sign-request.ts'
import { openControl } from '../../../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../../../integrations/object-storage/keys.ts'
import { openExchange } from '../../../../kit/s3/exchange.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { exitProcess, printLine, processArguments } from '../../../../kit/sys/process.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { type Attack, attacks } from './attacks.ts'

const [folder = '', program = '', share = '1', way = 'door', where = 'cells'] = processArguments()
await refuseUnlessAlone(folder)

/** Whatever is above the folder must be read-only: the engine may remove all that its user may. */
async function refuseUnlessAlone(alone: string): Promise<void> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).trim().split('\n')
  // Of several at one place the last one is seen.
  const seen = new Map(lines.map((line) => [line.split(' ')[4] ?? '', line.split(' ')[5] ?? '']))
  const writable = [...seen].flatMap(([point, options]) => (options.split(',').includes('rw') ? [point] : []))
  const others = writable.filter((point) => point !== alone && !point.startsWith('/proc'))
  const canWrite = await access(dirname(alone), constants.W_OK).then(
    () => true,
    () => false,
  )
  if (alone === '' || !writable.includes(alone) || others.length > 0 || canWrite)
    throw new Error(`more than ${alone} can be written here: ${others.join(', ')}`)
}

const parts = { clock: systemClock, random: systemRandom, log: silentLog }
const store = join(folder, 'store')
await mkdir(join(folder, 'outside'))
await writeFile(join(folder, 'outside', 'precious'), 'of nobody')
const certificates = await openCertificates({ ...parts, folder, hosts: ['localhost'] })
const controlPort = await probePort('127.0.0.1', 0)
const storage = await startObjectStorage({
  ...parts,
  program,
  certificates,
  controlPort,
  folder: store,
  host: '127.0.0.1',
  port: 0,
  token: 'token',
  registry: join(folder, 'registry'),
  ...(where === 'open' ? { isolation: { kind: 'process', hasProc: true } } : {}),
})
const never = () => ({ signal: new AbortController().signal, cancel: () => {} })
const control = openControl({ url: `http://127.0.0.1:${controlPort}`, token: 'token' }, never)
const url = `https://localhost:${storage.port}`

async function openTenant(id: string) {
  const settings = { ...newTenantKeys(systemRandom), quotaBytes: 1e9, isSuspended: false, isFrozen: false }
  await control.putTenant(id, settings)
  const exchange = openExchange({ url, authority: certificates.authority, credentials: settings, clock: systemClock })
  const bucket = `${settings.bucketPrefix}own`
  const ask = async (method: 'PUT' | 'POST' | 'DELETE', path: string, query = {}, body = '', headers = {}) => {
    const answer = await exchange.askWhole({ method, path, query, headers, body: Buffer.from(body) })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.text
  }
  await ask('PUT', bucket, {}, '', { 'x-amz-bucket-object-lock-enabled': 'true' })
  await ask('PUT', `${bucket}/secret`, {}, `of ${id}`)
  await ask('PUT', `${bucket}/deep/er/secret`, {}, `of ${id}`)
  const lock = '<LegalHold><Status>ON</Status></LegalHold>'
  await ask('PUT', `${bucket}/secret`, { 'legal-hold': '' }, lock, {
    'content-md5': createHash('md5').update(lock).digest('base64'),
  })
  const uploaded = await ask('POST', `${bucket}/k`, { uploads: '' })
  const uploadId = /<UploadId>([^<]+)</.exec(uploaded)?.[1] ?? ''
  await ask('PUT', `${bucket}/k`, { partNumber: '1', uploadId }, 'a part')
  return { settings, bucket, uploadId, ask }
}

const [ada, _inside, eve] = [await openTenant('ada'), await openTenant('internal-1'), await openTenant('eve')]

/** Of all that is not the attacker's: where, what, whose, when anything of it changed. */
async function digestOf(): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {}
  const own = await ownOf(store)
  const folders = [join(folder, 'outside'), store]
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    for (const name of await readdir(path)) {
      const inner = join(path, name)
      if (own.some((each) => inner === each) || name === '.vgwlocks' || name.startsWith('.nfs')) continue
      const { mode, uid, gid, ctimeNs } = await lstat(inner, { bigint: true })
      const isFolder = (Number(mode) & constants.S_IFMT) === constants.S_IFDIR
      const isFile = (Number(mode) & constants.S_IFMT) === constants.S_IFREG
      const content = isFile
        ? createHash('sha256')
            .update(await readFile(inner))
            .digest('hex')
        : ''
      found[inner.slice(folder.length)] = [mode, uid, gid, isFile ? ctimeNs : '', content].join(' ')
      if (isFolder) folders.push(inner)
    }
  }
  return found
}

/** Folders that are the attacker's alone. */
async function ownOf(from: string): Promise<readonly string[]> {
  const own: string[] = []
  const folders = [from]
  for (let path = folders.pop(); path !== undefined; path = folders.pop())
    for (const entry of await readdir(path, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue
      const inner = join(path, entry.name)
      if (!entry.name.startsWith(eve.settings.bucketPrefix)) folders.push(inner)
      else own.push(basename(path) === 'data' && dirname(path) !== store ? dirname(path) : inner)
    }
  return own
}

const agent = new Agent({ ca: certificates.authority, keepAlive: true, maxSockets: 16 })
const TIMEOUT_MILLISECONDS = 20_000
const engineAgent = new PlainAgent({ keepAlive: true, maxSockets: 16 })
const [ownFolder = ''] = await ownOf(store)
/** Through the proxy, or to the attacker's engine as if there were none. */
const open = (options: RequestOptions, listen: (answer: IncomingMessage) => void): ClientRequest =>
  way === 'past'
    ? httpRequest({ ...options, agent: engineAgent, socketPath: join(ownFolder, 'run', 's3') }, listen)
    : httpsRequest({ ...options, agent, host: 'localhost', port: storage.port }, listen)

/** Signed as its client would, whatever it says. */
function send({ method, target, headers, body }: Attack): Promise<string> {
  return new Promise((resolve) => {
    const bytes = Buffer.from(body)
    const md5 = bytes.length === 0 ? {} : { 'content-md5': createHash('md5').update(bytes).digest('base64') }
    let signed: Record<string, string> = {}
    try {
      const [path = '', search = ''] = target.split(/\?(.*)/s)
      const canonical = { host: `localhost:${storage.port}`, pathname: pathOf(path), search: `?${queryOf(search)}` }
      signed = signRequest(
        // What is signed is as the server reads it.
        { method: method as 'GET', url: canonical as URL, headers: { ...headers, ...md5 }, body: bytes },
        { ...eve.settings, region: 'us-east-1' },
        new Date(),
      )
      const all = { ...signed, host: canonical.host, 'content-length': String(bytes.length) }
      const request = open(
        { method, path: target, timeout: TIMEOUT_MILLISECONDS, headers: all },
        (answer: IncomingMessage) => {
          let text = ''
          answer.setEncoding('latin1').on('data', (piece: string) => {
            if (text.length < 500_000) text += piece
          })
          answer.once('close', () => resolve(`${answer.statusCode} ${text}`))
        },
      )
      request.once('timeout', () => {
        resolve('hang')
        request.destroy()
      })
      request.once('error', () => resolve('broken'))
      request.end(bytes)
    } catch {
      resolve('unsendable')
    }
  })
}

const escape = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
const unescape = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
const pathOf = (path: string): string => unescape(path).split('/').map(escape).join('/')
const queryOf = (search: string): string =>
  search
    .split('&')
    .filter((part) => part !== '')
    .map((part) => part.split(/=(.*)/s))
    .map(([name = '', value = '']) => `${escape(unescape(name))}=${escape(unescape(value))}`)
    .toSorted()
    .join('&')

const before = await digestOf()
/** From the folder of all tenants. */
async function placeOf(bucket: string): Promise<string> {
  for (const number of await readdir(join(store, 'tenants')))
    if ((await readdir(join(store, 'tenants', number, 'data'))).includes(bucket)) return `${number}/data/${bucket}`
  throw new Error(`${bucket} is nowhere`)
}
const destinations = [
  `${await placeOf(ada.bucket)}/secret`,
  await placeOf(ada.bucket),
  `${await placeOf(_inside.bucket)}/deep/er/secret`,
  `${dirname(dirname(await placeOf(ada.bucket)))}/run/users/users.json`,
  'outside/precious',
  `${eve.bucket}/secret`,
]
const answers: Record<string, number> = {}
const leaks: string[] = []
const hangs: string[] = []
const errors: string[] = []
const AT_ONCE = 12
let count = 0
const queue = attacks({ bucket: eve.bucket, uploadId: eve.uploadId, destinations }, Number(share))
async function work(): Promise<void> {
  for (const attack of queue) {
    count += 1
    // An engine that nobody asks for ends.
    if (way === 'past' && count % 200 === 0) await eve.ask('PUT', `${eve.bucket}/here`).catch(() => {})
    const answer = await send(attack)
    const status = answer.split(' ')[0] ?? ''
    answers[status] = (answers[status] ?? 0) + 1
    const shown = `${attack.method} ${attack.target} ${JSON.stringify(attack.headers)} ${attack.body}`.slice(0, 600)
    if (/of (?:ada|internal-1|nobody)|accessAccounts/.test(answer)) leaks.push(shown)
    if (status === 'hang' || status === 'broken') hangs.push(`${status} ${shown}`)
    if (status.startsWith('5') && status !== '501') errors.push(`${status} ${shown}`)
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work))
const after = await digestOf()
const changed = Object.keys({ ...before, ...after }).filter((path) => before[path] !== after[path])
// Nobody was kept out by it.
const isServed = await ada.ask('PUT', `${ada.bucket}/after`, {}, 'x').then(
  () => true,
  (error: unknown) => String(error),
)
printLine(JSON.stringify({ count, answers, leaks, hangs, errors, changed, isServed }))
agent.destroy()
engineAgent.destroy()
await storage.stop()
exitProcess(0)
