/** `svccloud ssh` and `svccloud scp`: the system's programs with the service's data of a server: address, port, user,
 *  and the host keys that the guest printed on its console. Nobody has to trust the first key. */
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { extname, join } from 'node:path'
import { z } from 'zod'
import { GUEST_USER_PATTERN } from '../domain/server/guest-user.ts'
import type { Clock } from '../kit/sys/clock.ts'
import { writeWhole } from '../kit/sys/durable-file.ts'
import { nodeBinary } from '../kit/sys/process.ts'
import { exclusively } from '../kit/sys/exclusive.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import type { Api } from './api.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'
import { progressOn } from './progress.ts'

/** Values for ssh, which may pass them to a shell: strict formats, so that none of them is an option or a command. */
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i
const HOST_KEY = /^(ssh|ecdsa|sk)-[a-z0-9@.-]{1,60} [A-Za-z0-9+/]{16,16384}={0,3}( [\x21-\x7e]{1,256})?$/
const isHost = (text: string): boolean => isIP(text) !== 0 || HOST_NAME.test(text)
/** Zones give it as `socks5://HOST:PORT`. */
const isProxy = (text: string): boolean =>
  URL.canParse(text) && isHost(addressOfProxy(text).host) && addressOfProxy(text).port !== ''

const Answer = z.object({
  server: z.object({
    id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/i, 'is no id'),
    hostname: z.string(),
    state: z.string(),
    state_detail: z.string(),
    network_status_reason: z.string().nullable(),
    ssh: z
      .object({
        host: z.string().refine(isHost, 'is no host'),
        port: z.int().min(1).max(65_535),
        user: z.string().regex(GUEST_USER_PATTERN, 'is no user'),
        host_keys: z.array(z.string().regex(HOST_KEY, 'is no host key')),
        proxy: z
          .url({ protocol: /^socks5$/ })
          .refine(isProxy, 'is no proxy')
          .nullable()
          .optional(),
      })
      .nullable()
      .optional(),
  }),
})
type ReachedServer = z.infer<typeof Answer>['server']
type Target = ReachedServer & { readonly ssh: NonNullable<ReachedServer['ssh']> }

export interface SshParts {
  readonly api: Api
  readonly terminal: Terminal
  readonly clock: Clock
  readonly signal: AbortSignal
  /** File with the host keys of the profile's servers. */
  readonly knownHostsFile: string
}

export interface SshChoice {
  /** Private key; ssh chooses one when absent. */
  readonly identity: string | undefined
  /** User instead of the one with the keys. */
  readonly user: string | undefined
  /** Connects without a known host key, and saves the key that the server presents. */
  readonly acceptsNewKey: boolean
}

/** A guest without hardware acceleration takes minutes to boot. */
const BOOT_MILLISECONDS_MAXIMUM = 600_000
const LOOK_MILLISECONDS = 1_000
const CONNECT_SECONDS = 20
const LOOPBACK = /^(127\.|::1$|localhost$|\[::1\]$)/

/** Runs ssh and returns its exit code. The words are the command; without any it opens a session. Throws a Failure for
 *  an unreachable server. */
export async function runSsh(
  parts: SshParts,
  serverId: string,
  words: readonly string[],
  choice: SshChoice,
): Promise<number> {
  const target = await reach(parts, serverId, choice)
  await remember(parts, target)
  const { host, port, user } = target.ssh
  return parts.terminal.runProgram('ssh', [
    ...optionsOf(parts, target, choice),
    '-p',
    String(port),
    '-l',
    choice.user ?? user,
    '--',
    host,
    ...words,
  ])
}

/** Runs scp and returns its exit code. `NAME:PATH` is a file on the server, which `idOf` finds. */
export async function runScp(
  parts: SshParts,
  words: readonly string[],
  idOf: (name: string) => Promise<string>,
  choice: SshChoice & { readonly isRecursive: boolean },
): Promise<number> {
  const names = [...new Set(words.flatMap((word) => remoteOf(word)?.name ?? []))]
  const [name] = names
  if (name === undefined || words.length < 2)
    throw usageFailure('scp takes sources and a target, one side on a server: svccloud scp notes.txt web:/tmp/')
  if (names.length > 1) throw usageFailure(`scp copies from or to one server, not between ${names.join(' and ')}`)
  const target = await reach(parts, await idOf(name), choice)
  await remember(parts, target)
  const { host, port, user } = target.ssh
  const address = `${choice.user ?? user}@${host.includes(':') ? `[${host}]` : host}`
  return parts.terminal.runProgram('scp', [
    ...optionsOf(parts, target, choice),
    '-P',
    String(port),
    ...(choice.isRecursive ? ['-r'] : []),
    '--',
    ...words.map((word) => {
      const remote = remoteOf(word)
      return remote === undefined ? word : `${address}:${remote.path}`
    }),
  ])
}

/** The same rule as in scp: a colon before any slash. */
function remoteOf(word: string): { readonly name: string; readonly path: string } | undefined {
  const [, name, path] = /^([^/:]+):(.*)$/s.exec(word) ?? []
  return name === undefined || path === undefined ? undefined : { name, path }
}

/** The same program in a checkout and in a package. */
const PROXY_PROGRAM = join(import.meta.dirname, `proxy${extname(import.meta.filename)}`)
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** Uses the proxy of the zone, unless another route to the server exists. */
function proxyOf({ ssh }: Target): readonly string[] {
  if (ssh.proxy === null || ssh.proxy === undefined) return []
  const { host, port } = addressOfProxy(ssh.proxy)
  const command = [nodeBinary(), PROXY_PROGRAM, host, port].map(quoted).join(' ').replaceAll('%', '%%')
  return [`ProxyCommand=${command} %h %p`]
}

const optionsOf = (
  { knownHostsFile }: SshParts,
  target: Target,
  { identity, acceptsNewKey }: SshChoice,
): readonly string[] => [
  ...[
    ...proxyOf(target),
    `HostKeyAlias=${aliasOf(target.id)}`,
    `UserKnownHostsFile="${knownHostsFile.replaceAll('%', '%%')}"`,
    'GlobalKnownHostsFile=/dev/null',
    `StrictHostKeyChecking=${acceptsNewKey ? 'accept-new' : 'yes'}`,
    'UpdateHostKeys=no',
    `ConnectTimeout=${CONNECT_SECONDS}`,
  ].flatMap((option) => ['-o', option]),
  ...(identity === undefined ? [] : ['-i', identity, '-o', 'IdentitiesOnly=yes']),
]

const aliasOf = (serverId: string): string => `svccloud-${serverId}`

/** Waits while the server starts, until its host keys are known. */
async function reach(parts: SshParts, serverId: string, { acceptsNewKey }: SshChoice): Promise<Target> {
  const { api, terminal, clock, signal } = parts
  const progress = progressOn(terminal)
  const deadline = clock.monotonicMilliseconds() + BOOT_MILLISECONDS_MAXIMUM
  try {
    for (;;) {
      const server = await read(api, serverId, signal)
      const target = targetOf(api, server)
      if (target !== undefined && (acceptsNewKey || target.ssh.host_keys.length > 0)) return target
      if (clock.monotonicMilliseconds() > deadline) throw new Failure(EXIT.refused, unknownKeys(server))
      progress.show(
        target === undefined
          ? `${server.hostname} is ${server.state}`
          : `${server.hostname} is booting: waiting for its SSH host keys on the console`,
      )
      await clock.sleep(LOOK_MILLISECONDS, signal)
      if (signal.aborted) throw new Failure(EXIT.interrupted, 'interrupted')
    }
  } finally {
    progress.end()
  }
}

async function read(api: Api, serverId: string, signal: AbortSignal): Promise<ReachedServer> {
  const { body } = await api.send({ method: 'GET', path: `/v1/servers/${encodeURIComponent(serverId)}`, signal })
  return Answer.parse(body).server
}

const unknownKeys = ({ hostname }: ReachedServer): string =>
  `${hostname} has not printed its SSH host keys on its console, so its identity cannot be verified: check with ` +
  `svccloud console ${hostname}, or accept the key that it presents with --accept-new-key`

/** Undefined while the server starts. Throws a Failure when it is unreachable. */
function targetOf(api: Api, server: ReachedServer): Target | undefined {
  const { hostname, state, state_detail: detail, ssh } = server
  if (state === 'creating' || state === 'starting') return undefined
  if (state !== 'started')
    throw new Failure(
      EXIT.refused,
      `${hostname} is ${state}${detail === '' ? '' : `: ${detail}`}` +
        `${state === 'stopped' ? `; start it with svccloud server start ${hostname}` : ''}`,
    )
  if (ssh === null || ssh === undefined)
    throw new Failure(
      EXIT.refused,
      `no address reaches the SSH port of ${hostname}: ${server.network_status_reason ?? 'it has no public address'} ` +
        `svccloud console ${hostname} works without a network.`,
    )
  const reached =
    ssh.proxy === null || ssh.proxy === undefined ? { host: ssh.host, port: ssh.port } : addressOfProxy(ssh.proxy)
  if (LOOPBACK.test(reached.host) && !LOOPBACK.test(new URL(api.url).hostname))
    throw new Failure(
      EXIT.refused,
      `${hostname} is reachable at ${reached.host} port ${reached.port} only on its host: run svccloud there, ` +
        `or use svccloud console ${hostname}`,
    )
  return { ...server, ssh }
}

const addressOfProxy = (proxy: string) => {
  const { hostname, port } = new URL(proxy)
  return { host: hostname.replace(/^\[|\]$/g, ''), port }
}

/** Writes the keys of the server and keeps those of other servers. Writes a new file and renames it. */
async function remember({ knownHostsFile: file, clock }: SshParts, { id, ssh }: Target): Promise<void> {
  if (ssh.host_keys.length === 0) return
  await exclusively(`${file}.lock`, clock, async () => {
    const alias = aliasOf(id)
    const before = await readFile(file, 'utf8').catch(() => '')
    const others = before.split('\n').filter((line) => line !== '' && !line.startsWith(`${alias} `))
    const lines = [...others, ...ssh.host_keys.map((key) => `${alias} ${key}`)]
    await writeWhole(file, `${lines.join('\n')}\n`)
  })
}
