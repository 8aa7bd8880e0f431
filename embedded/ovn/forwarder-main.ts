/** The process in the network namespace of the cloud that connects to servers. Its parent listens on the machine and
 *  passes it the connections, with `{host, port}` if the destination is known. Nodes of clusters also reach their
 *  control planes through it. It exits with its parent. */
import type { Socket } from 'node:net'
import { exitProcess, onParentMessage } from '../../kit/sys/process.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { ForwarderSettings } from '../kit/process-settings.ts'
import { openSocksProxy } from './socks-proxy.ts'
import { openNodesListener } from './nodes-listener.ts'
import type { Destination } from './twins.ts'

const { settings, log, stopped } = await startProcess('forwarder', ForwarderSettings)
void stopped.then(() => exitProcess(0))
const proxy = openSocksProxy(settings.networks)
if (settings.nodesListener !== undefined)
  openNodesListener(settings.nodesListener).catch((error: unknown) => {
    log.error('nodes reach no control plane', { error })
    exitProcess(1)
  })
onParentMessage((message, handle) => {
  const client = handle as Socket | undefined // the parent sends nothing else
  const { host, port } = message as Partial<Destination> // the same
  if (client === undefined) return
  if (host === undefined || port === undefined) proxy.serve(client)
  else proxy.join(client, host, port)
})
