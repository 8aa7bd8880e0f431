/** A complete server in one data folder: log, certificates, tokens, HTTPS. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import type { Random } from '../../../kit/sys/random.ts'
import { openCore, type Core } from '../core/core.ts'
import { openLogStorage } from '../storage/log.ts'
import { webhookCaller } from './call-webhook.ts'
import { openCertificates } from './certificates.ts'
import { ADMIN_USER, issueKubeconfig, tokenFile, tokenKeyOf } from './credentials.ts'
import { serveHttps } from './https.ts'
import { openMetrics } from './metrics.ts'

export interface ServerOptions {
  readonly folder: string
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Bearer token for webhooks on the loopback address. */
  readonly webhookToken?: string | undefined
  /** Called once when the disk has failed: nothing can be written, so the process should exit. */
  readonly onStorageFailure?: (error: unknown) => void
}

export interface EmbeddedServer {
  readonly url: string
  readonly port: number
  readonly core: Core
  /** Kubeconfig of the administrator, who has all rights. */
  readonly kubeconfig: string
  /** PEM file of the authority that clients must trust. */
  readonly authorityFile: string
  readonly authority: string
  /** Writes a kubeconfig for another user. */
  issue(user: { readonly user: string; readonly groups: readonly string[] }, file: string): Promise<string>
  stop(): Promise<void>
}

/** Throws when the folder is in use. */
export async function startKubernetesApi({
  folder,
  host,
  port,
  clock,
  random,
  log,
  webhookToken,
  onStorageFailure = () => {},
}: ServerOptions): Promise<EmbeddedServer> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const storage = await openLogStorage({ folder: join(folder, 'log'), log, onFailure: onStorageFailure })
  const core = await openCore({
    clock,
    random,
    log,
    storage,
    authenticate: tokenFile(folder),
    tokenKey: await tokenKeyOf(folder, random),
    callWebhook: webhookCaller(webhookToken),
  })
  storage.setSource(() => core.engine.store.state())
  const certificates = await openCertificates({
    folder,
    hosts: [...new Set(['127.0.0.1', 'localhost', reachable(host)])],
    clock,
    random,
  })
  const https = await serveHttps({
    core,
    certificates,
    host,
    port,
    log,
    metrics: openMetrics(core.engine, clock),
    clock,
  })
  const url = `https://${bracketed(reachable(host))}:${https.port}`
  const { authority } = certificates
  const issue: EmbeddedServer['issue'] = (user, file) =>
    issueKubeconfig({ folder, url, authority, ...user, file, random })
  const kubeconfig = join(folder, 'admin.kubeconfig')
  await issue(ADMIN_USER, kubeconfig)
  return {
    url,
    port: https.port,
    core,
    kubeconfig,
    authorityFile: join(folder, 'ca.crt'),
    authority,
    issue,
    async stop() {
      core.engine.watches.endAll()
      await https.close()
      await core.close()
    },
  }
}

/** The address under which clients on this machine reach a server that listens on `host`. */
const reachable = (host: string): string => (host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host)
const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)
