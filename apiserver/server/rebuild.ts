/** Making the boot storage of a server anew. */
import { badField } from '../../domain/problem.ts'
import { requireRebuildable } from '../../domain/server-rules.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { Secret } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import { isOffered, Template } from '../../resources/catalog/index.ts'
import { type RebuildServer, rebuildServer } from '../../resources/server/index.ts'
import type { OperationStanza } from '../../resources/shapes.ts'
import { OutcomeUnknown } from '../change/accept.ts'
import { operate } from './begin.ts'
import type { Parts } from '../parts.ts'
import type { ServerObject, Servers } from './servers.ts'
import { chooseKeys, chooseUserData, writeUserData } from './create.ts'

export const rebuildServerEndpoint = (parts: Parts, servers: Servers): Endpoint =>
  customerEndpoint(rebuildServer, async (call) => {
    const {
      caller: { accountId },
      params: { id: serverId },
      body,
      now,
    } = call
    const namespace = accountNamespace(accountId)
    const template = chooseTemplate(parts, await servers.read(accountId, serverId), body, now)
    const sshKeys =
      body.ssh_keys === undefined && body.ssh_key_ids === undefined
        ? undefined
        : await chooseKeys(parts, accountId, body)
    const userData = await chooseUserData(parts, accountId, body)
    const isUserDataKept = body.user_data === undefined && body.init_script_id === undefined
    let made: string | undefined
    const secretNameOf = ({ id }: OperationStanza): string => `${serverId}-user-data-${id}`
    return operate(parts, servers, call, {
      kind: 'server.rebuild',
      validate: (server) => requireRebuildable(server, body.stop),
      ...(userData === undefined
        ? {}
        : {
            prepare: async ({ server, operation }) => {
              made = secretNameOf(operation)
              await writeUserData(parts, { namespace, name: made, serverId, owner: server, text: userData })
            },
          }),
      spec: ({ operation }) => ({
        template,
        ...(sshKeys === undefined ? {} : { sshKeys }),
        ...(isUserDataKept
          ? {}
          : {
              userDataSecretName: userData === undefined ? null : secretNameOf(operation),
              initScriptId: body.init_script_id ?? null,
            }),
      }),
      arguments: ({ server: { spec, metadata } }) => ({
        previous_boot_storage: spec.bootStorageId ?? metadata.name,
        ...(spec.template === undefined ? {} : { previous_template: spec.template }),
        ...(spec.userDataSecretName === undefined ? {} : { previous_user_data_secret: spec.userDataSecretName }),
        ...(spec.initScriptId === undefined ? {} : { previous_init_script: spec.initScriptId }),
      }),
    }).catch(async (error: unknown) => {
      if (made !== undefined && !(error instanceof OutcomeUnknown))
        await parts.store.delete(Secret, { namespace, name: made }).catch(() => {})
      throw error
    })
  })

/** Throws 400 for a template that is not offered, or not for a server of this size. */
function chooseTemplate(
  { caches }: Pick<Parts, 'caches'>,
  { spec, status }: ServerObject,
  body: RebuildServer,
  now: Date,
): string {
  const name = body.template ?? spec.template
  const template = name === undefined ? undefined : caches.of(Template).get({ name })?.spec
  if (name === undefined || template === undefined || !isOffered(template, spec.zone, now))
    throw badField('template', 'there is no such template in the zone')
  if ((status?.storageGibibytes ?? 0) < template.minStorageGibibytes)
    throw badField('template', `it needs a boot storage of ${template.minStorageGibibytes} GiB`)
  if ((status?.memoryMebibytes ?? 0) < template.minMemoryMebibytes)
    throw badField('template', `it needs ${template.minMemoryMebibytes} MiB of memory`)
  return name
}
