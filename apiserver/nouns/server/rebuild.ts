/** Recreates the boot storage of a server. */
import { systemOf } from '../../../changes/kit/system.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { defined } from '../../../domain/defined.ts'
import { requireOwnMachine } from '../../../domain/managed-machine/rules.ts'
import { requireNoBootHolds } from '../../../db/storage-hold/index.ts'
import { badField } from '../../../domain/problem.ts'
import { requireRebuildable } from '../../../domain/server/rules.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { Secret } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { type RebuildServer, rebuildServer } from '../../../resources/server/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { OutcomeUnknown } from '../../kit/change/accept.ts'
import { operate } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { inWords, WORDS } from '../../kit/words.ts'
import type { ServerObject, Servers } from './objects.ts'
import { chooseKeys, chooseUserData, readImage, writeUserData } from './create.ts'

export const rebuildServerEndpoint = (parts: Parts, servers: Servers): Endpoint =>
  customerEndpoint(rebuildServer, async (call) => {
    const {
      caller: { accountId },
      params: { id: serverId },
      body,
      now,
    } = call
    const namespace = accountNamespace(accountId)
    const server = await servers.read(accountId, serverId)
    requireOwnMachine(server.spec.managedBy, 'remake')
    const system = await inWords(WORDS.rest, () => chooseBoot(parts, accountId, server, body, now))
    const sshKeys =
      body.ssh_keys === undefined && body.ssh_key_ids === undefined
        ? undefined
        : await chooseKeys(parts, accountId, body)
    const template = body.custom_image_id == null ? (body.template ?? server.spec.template) : undefined
    const userData = await chooseUserData(parts, accountId, { ...body, template })
    const isUserDataKept = body.user_data === undefined && body.init_script_id === undefined
    let secretName: string | undefined
    const secretNameOf = ({ id }: OperationStanza): string => `${serverId}-user-data-${id}`
    return operate(parts, servers, call, {
      kind: 'server.rebuild',
      validate: (facts) => requireRebuildable(facts, body.stop),
      claim: (tx) => requireNoBootHolds(tx, { accountId, serverId }),
      ...(userData === undefined
        ? {}
        : {
            prepare: async ({ target, operation }) => {
              secretName = secretNameOf(operation)
              await writeUserData(parts, { namespace, name: secretName, serverId, owner: target, text: userData })
            },
          }),
      spec: ({ operation }) => ({
        ...system,
        ...defined({ sshKeys }),
        ...(isUserDataKept
          ? {}
          : {
              userDataSecretName: userData === undefined ? null : secretNameOf(operation),
              initScriptId: body.init_script_id ?? null,
            }),
      }),
      arguments: ({ target: { spec, metadata } }) => ({
        previous_boot_storage: spec.bootStorageId ?? metadata.name,
        ...defined({
          previous_template: spec.template,
          previous_custom_image: spec.customImageId,
          previous_user_data_secret: spec.userDataSecretName,
          previous_init_script: spec.initScriptId,
        }),
      }),
    }).catch(async (error: unknown) => {
      if (secretName !== undefined && !(error instanceof OutcomeUnknown))
        await parts.store.delete(Secret, { namespace, name: secretName }).catch(() => {})
      throw error
    })
  })

/** A merge patch: the server's previous source is removed. */
type Boot =
  | { readonly template: string; readonly customImageId: null }
  | { readonly template: null; readonly customImageId: string }

/** Throws what `systemOf` does, and 400 for a system that the server is too small for. */
async function chooseBoot(
  parts: Pick<Parts, 'caches' | 'store'>,
  accountId: string,
  { spec, status }: ServerObject,
  body: RebuildServer,
  now: Date,
): Promise<Boot> {
  const isGiven = body.template !== undefined || typeof body.custom_image_id === 'string'
  const { template, customImageId } = isGiven
    ? { template: body.template, customImageId: body.custom_image_id ?? undefined }
    : spec
  await readImage(parts, accountId, customImageId)
  const { zone } = spec
  const system = systemOf(worldOf(parts.caches), { accountId, now }, { zone, template, customImageId })
  const field = customImageId === undefined ? 'template' : 'customImageId'
  if ((status?.storageGibibytes ?? 0) < system.minStorageGibibytes)
    throw badField(field, `it needs a boot storage of ${system.minStorageGibibytes} GiB`)
  if ((status?.memoryMebibytes ?? 0) < system.minMemoryMebibytes)
    throw badField(field, `it needs ${system.minMemoryMebibytes} MiB of memory`)
  return customImageId === undefined
    ? { template: template ?? '', customImageId: null }
    : { template: null, customImageId }
}
