/** The machine of a database, its storage, and the configuration of the machine. Pure. */
import { DATABASE_ROLE, fullBackupAt, RENEW_DAYS, serverSettings } from '../../../domain/database/rules.ts'
import { databaseRuleset } from '../../../domain/database/ruleset.ts'
import { DATABASE_TEMPLATE } from '../../../domain/managed-machine/rules.ts'
import { scramVerifier } from '../../../domain/database/scram.ts'
import type { DatabaseClaim } from '../../../db/database/index.ts'
import { apiVersionOf } from '../../../kit/kube/object.ts'
import { DAY_MILLISECONDS } from '../../../kit/sys/certificate.ts'
import { Database } from '../../../resources/database/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import type { MachineDocumentParts, Repository } from '../../../resources/managed-machine/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import {
  type ConfigurationId,
  configurationFingerprint,
  type Machine,
  type MachineDemand,
  machineName,
  type Owner,
} from '../managed-machine/index.ts'
import type { DatabaseEffect, DatabaseObject, Observed, StorageObject } from './observed.ts'

const HOSTNAME_CHARACTERS = 12
const SERIAL_CHARACTERS = 20
const DATA = 'data'

export function databaseOwner({ metadata, spec }: DatabaseObject, accountId: string): Owner {
  const { name: id, namespace = '', uid = '' } = metadata
  return { type: 'database', id, uid, namespace, accountId, zone: spec.zone, resource: Database }
}

/** Name of the Storage with its data: always the same, so that there are never two. */
export const dataStorageName = ({ metadata: { uid = '' } }: DatabaseObject): string => machineName({ uid }, DATA)

export const databaseMachine = (machines: readonly Machine[]): Machine | undefined =>
  machines.find(({ role, isDeleting }) => role === DATABASE_ROLE && !isDeleting)

/** Its address in the network of the database; undefined until it has one. */
export const hostOf = (machine: Machine | undefined, { networkId }: DatabaseObject['spec']): string | undefined =>
  machine?.interfaces.find((each) => each.networkId === networkId)?.ipv4Address

/** It has no certificate for its address, or one that expires soon. */
export function needsCertificate({ certificate }: DatabaseClaim, host: string, now: Date): boolean {
  if (certificate?.host !== host) return true
  return certificate.expiresAt.getTime() - now.getTime() < RENEW_DAYS * DAY_MILLISECONDS
}

/** The desired machine of the database. */
export function databaseDemand(database: DatabaseObject, observed: Observed): MachineDemand {
  const { metadata, spec } = database
  const machine = databaseMachine(observed.machines)
  return {
    role: DATABASE_ROLE,
    hostname: `db-${(metadata.uid ?? '').replaceAll('-', '').slice(0, HOSTNAME_CHARACTERS)}`,
    plan: spec.plan,
    template: DATABASE_TEMPLATE,
    publicIpv4: false,
    networkIds: [spec.networkId],
    sharedAddresses: [],
    configuration: configurationOf(database, observed),
    // Not to be replaced now: another machine would restart the restore, one on trial has an old root disk to go back
    // to, and the data may be on a lost host.
    isPatient:
      machine?.report?.postgresql?.state === 'restoring' ||
      machine?.diskExchange?.isOver === false ||
      machine?.nodeState === 'fenced',
    keepsImage: true,
  }
}

/** It is restored from another database, and its creation has not finished. */
export const isToRestore = ({ spec, status }: DatabaseObject): boolean =>
  spec.restoredFrom !== undefined && status?.isMade !== true

/** Undefined until it has its address, a certificate for that, its storage, and its archive where there can be one. */
function configurationOf(
  database: DatabaseObject,
  { claim, machines, storage, networks, archive, origin }: Observed,
): ConfigurationId | undefined {
  const machine = databaseMachine(machines)
  const host = hostOf(machine, database.spec)
  if (host === undefined || claim?.certificate?.host !== host || networks === undefined) return undefined
  if (!isAttached(storage, machine)) return undefined
  if (archive?.isOpen === false || (isToRestore(database) && origin === undefined)) return undefined
  const { databaseName, ownerName, plan, backupSchedule, backupRetentionDays } = database.spec
  const inputs = [
    [databaseName, ownerName, claim.generation, claim.certificate.certificate, networks, serverSettings(plan)],
    databaseRuleset(networks),
    archive === undefined ? null : [archive.row?.accessKeyId, archive.authority, backupRetentionDays, backupSchedule],
    isToRestore(database) ? [origin?.accessKeyId, database.spec.restoredFrom?.targetTime ?? null] : null,
  ]
  return { generation: claim.generation, fingerprint: configurationFingerprint(inputs) }
}

export const isAttached = (storage: StorageObject | undefined, machine: Machine | undefined): boolean =>
  machine !== undefined && storage?.status?.state === 'online' && storage.status.serverId === machine.serverId

/** The storage is created once its machine runs, and is attached again after the machine was replaced. One that was
 *  made is never made again: it would be empty. */
export function storageActions(database: DatabaseObject, observed: Observed): readonly DatabaseEffect[] {
  const { accountId = '', machines, storage, missingStorage } = observed
  const machine = databaseMachine(machines)
  if (missingStorage !== undefined) return []
  if (machine?.state !== 'started' || storage?.spec.serverId === machine.serverId) return []
  if (storage?.metadata.deletionTimestamp !== undefined) return []
  const { metadata, spec } = database
  const owners = [
    {
      apiVersion: apiVersionOf(Database),
      kind: Database.kind,
      name: metadata.name,
      uid: metadata.uid ?? '',
      controller: true,
    },
  ]
  return [
    {
      do: 'ensure',
      type: Storage,
      draft: {
        metadata: {
          name: dataStorageName(database),
          namespace: metadata.namespace ?? '',
          labels: { [ACCOUNT_LABEL]: accountId },
          ownerReferences: owners,
          finalizers: [finalizerOf(Storage)],
        },
        spec: Storage.spec.parse({
          zone: spec.zone,
          sizeGibibytes: spec.storageGibibytes,
          serverId: machine.serverId,
        }),
      },
    },
  ]
}

/** The secrets of a database, opened. */
export interface OpenedSecrets {
  readonly password: string
  readonly key: string
  readonly archive: Repository | undefined
  /** The repository of the database that it is restored from. */
  readonly origin: Repository | undefined
}

/** The configuration document of its machine; undefined while it is incomplete. */
export function databaseDocument(
  database: DatabaseObject,
  { claim, networks }: Pick<Observed, 'claim' | 'networks'>,
  { password, key, archive, origin }: OpenedSecrets,
): MachineDocumentParts | undefined {
  if (claim?.certificate === undefined || networks === undefined) return undefined
  if (isToRestore(database) && origin === undefined) return undefined
  const { databaseName, ownerName, plan, backupSchedule, backupRetentionDays, restoredFrom } = database.spec
  return {
    nftables: databaseRuleset(networks),
    postgresql: {
      diskSerial: dataStorageName(database).replaceAll('-', '').slice(0, SERIAL_CHARACTERS),
      database: databaseName,
      owner: ownerName,
      passwordVerifier: scramVerifier(password, `${database.metadata.uid}/${claim.passwordGeneration}`),
      passwordGeneration: claim.passwordGeneration,
      certificate: claim.certificate.certificate,
      key,
      networks: [...networks],
      settings: { ...serverSettings(plan) },
      ...(archive === undefined
        ? {}
        : {
            archive: {
              repository: archive,
              retentionDays: backupRetentionDays,
              fullBackupAt: fullBackupAt(backupSchedule),
            },
          }),
      ...(origin === undefined || !isToRestore(database)
        ? {}
        : { restore: { repository: origin, targetTime: restoredFrom?.targetTime ?? null } }),
    },
  }
}
