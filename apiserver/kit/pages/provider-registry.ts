/** The registry of the provider for Terraform and OpenTofu, from a folder with its releases: the provider registry
 *  protocol, outside of `/v1`. Both programs ask for `/.well-known/terraform.json` first, and only over HTTPS. */
import { createReadStream } from 'node:fs'
import { access, readdir, readFile, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { z } from 'zod'
import { newUuid, type Random } from '../../../kit/sys/random.ts'

const SERVICES = '/.well-known/terraform.json'
const PROVIDERS = '/terraform/providers/v1/'
const FILES = '/terraform/files/'
const OWN = 'svccloud/svccloud'
const NAME = 'terraform-provider-svccloud'

const SUMS = new RegExp(`^${NAME}_([0-9]+\\.[0-9]+\\.[0-9]+(?:-[0-9A-Za-z.-]+)?)_SHA256SUMS$`)
const SUM = /^([0-9a-f]{64}) {2}(\S+)$/
const FILES_MAXIMUM = 10_000

/** `signing-key.json`: the public key, as the release wrote it. */
const SigningKey = z.strictObject({ key_id: z.string().regex(/^[0-9A-F]{16}$/), ascii_armor: z.string().min(1) })
/** `…_manifest.json`. */
const Manifest = z.object({ metadata: z.object({ protocol_versions: z.array(z.string()).min(1) }) })

interface Platform {
  readonly os: string
  readonly arch: string
  readonly filename: string
  readonly shasum: string
}

interface Release {
  readonly version: string
  readonly protocols: readonly string[]
  readonly platforms: readonly Platform[]
}

export interface ProviderRegistry {
  readonly folder: string
  /** Bytes of each file that is sent. */
  readonly sizes: ReadonlyMap<string, number>
  readonly key: z.infer<typeof SigningKey>
  readonly releases: readonly Release[]
}

async function readRelease(folder: string, version: string): Promise<Release> {
  const start = `${NAME}_${version}_`
  const sums = await readFile(join(folder, `${start}SHA256SUMS`), 'utf8')
  // both programs verify it; a release without it is none
  await access(join(folder, `${start}SHA256SUMS.sig`))
  const platforms = sums.split('\n').flatMap((line): Platform[] => {
    const [, shasum = '', filename = ''] = SUM.exec(line) ?? []
    const [os, arch] = filename.slice(start.length, -'.zip'.length).split('_')
    const isOwn = filename.startsWith(start) && filename.endsWith('.zip')
    return isOwn && os !== undefined && arch !== undefined ? [{ os, arch, filename, shasum }] : []
  })
  for (const { filename } of platforms) await access(join(folder, filename))
  const text = await readFile(join(folder, `${start}manifest.json`), 'utf8')
  const { metadata } = Manifest.parse(JSON.parse(text))
  return { version, platforms, protocols: metadata.protocol_versions }
}

/** Reads what is in the folder, as `npm run build:terraform-release` writes it. Throws when a release is not complete,
 *  and when there is none. */
export async function readProviderRegistry(folder: string): Promise<ProviderRegistry> {
  const names = await readdir(folder)
  if (names.length > FILES_MAXIMUM) throw new Error(`${folder} has more than ${FILES_MAXIMUM} files`)
  const versions = names.flatMap((name) => SUMS.exec(name)?.[1] ?? [])
  if (versions.length === 0) throw new Error(`${folder} has no release of ${NAME}`)
  const key = SigningKey.parse(JSON.parse(await readFile(join(folder, 'signing-key.json'), 'utf8')))
  const releases: Release[] = []
  for (const version of versions) releases.push(await readRelease(folder, version))
  const sent = versions.flatMap((version) => [
    ...['SHA256SUMS', 'SHA256SUMS.sig'].map((end) => `${NAME}_${version}_${end}`),
    ...releases.flatMap(({ platforms }) => platforms.map(({ filename }) => filename)),
  ])
  const sizes = await Promise.all(
    [...new Set(sent)].map(async (name) => [name, (await stat(join(folder, name))).size] as const),
  )
  return { folder, key, releases, sizes: new Map(sizes) }
}

/** What is at a path of the protocol, as JSON; undefined when nothing is. */
function answerOf({ releases, key }: ProviderRegistry, path: string): object | undefined {
  if (path === SERVICES) return { 'providers.v1': PROVIDERS }
  if (!path.startsWith(`${PROVIDERS}${OWN}/`)) return undefined
  const [first = '', what, os, arch, ...more] = path.slice(`${PROVIDERS}${OWN}/`.length).split('/')
  if (first === 'versions' && what === undefined)
    return {
      versions: releases.map(({ version, protocols, platforms }) => ({
        version,
        protocols,
        platforms: platforms.map((platform) => ({ os: platform.os, arch: platform.arch })),
      })),
    }
  const release = releases.find(({ version }) => version === first)
  const platform = release?.platforms.find((each) => each.os === os && each.arch === arch)
  if (release === undefined || platform === undefined || what !== 'download' || more.length > 0) return undefined
  const start = `${FILES}${NAME}_${release.version}_`
  return {
    protocols: release.protocols,
    ...platform,
    download_url: `${FILES}${platform.filename}`,
    shasums_url: `${start}SHA256SUMS`,
    shasums_signature_url: `${start}SHA256SUMS.sig`,
    signing_keys: { gpg_public_keys: [key] },
  }
}

const isOurs = (path: string): boolean => path === SERVICES || path.startsWith('/terraform/')

/** Answers requests of the protocol; true when it answered. */
export function providerRegistryPages(
  registry: ProviderRegistry | undefined,
  random: Random,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    if (registry === undefined || !isOurs(path)) return false
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const name = path.startsWith(FILES) ? path.slice(FILES.length) : ''
    const bytes = registry.sizes.get(name)
    const answer = answerOf(registry, path)
    const headers = {
      'x-request-id': newUuid(random),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
    }
    if (!isRead) {
      response.writeHead(405, { ...headers, allow: 'GET, HEAD', 'content-length': 0 }).end()
    } else if (bytes !== undefined) {
      response.writeHead(200, { ...headers, 'content-type': 'application/octet-stream', 'content-length': bytes })
      if (request.method === 'HEAD') response.end()
      // whoever leaves ends it, and a file that is removed meanwhile cuts the answer off
      else pipeline(createReadStream(join(registry.folder, name)), response, () => undefined)
    } else {
      const body = Buffer.from(JSON.stringify(answer ?? { errors: ['There is nothing at this path.'] }))
      response.writeHead(answer === undefined ? 404 : 200, {
        ...headers,
        'content-type': 'application/json',
        'content-length': body.length,
      })
      response.end(request.method === 'HEAD' ? undefined : body)
    }
    return true
  }
}
