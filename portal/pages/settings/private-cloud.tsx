/** Hosts that only this account uses: how full they are, and asking for more. */
import { Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import type { PrivateCloudZone } from '../../../client/schema.ts'
import { useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { useQuestion } from '../../nouns/ask.tsx'
import { Time } from '../../nouns/value.tsx'
import { gibibytes, mebibytes, number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { Button } from '../../ui/button.tsx'
import { Between, Loading, Panel, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Bar } from '../../ui/state.tsx'
import { Rows } from './rows.tsx'

const partOf = (used: number, all: number): number => (all === 0 ? 0 : used / all)

export function PrivateCloud(): ReactNode {
  const may = useMay()
  const [ask, dialog] = useQuestion(['get_private_cloud', 'list_private_cloud_requests'])
  const { data, error } = useRead('get_private_cloud', {}, { isAlwaysStale: true })
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  const texts = settingsTexts().privateCloud
  const { minimums } = data
  return (
    <Stack gap="loose">
      <Between>
        <p className="soft">{texts.note}</p>
        {may('create_private_cloud_request') ? (
          <Button
            kind="primary"
            icon={<Plus aria-hidden="true" />}
            why={data.open_request === null ? undefined : texts.isOpen}
            onPress={() =>
              ask({
                operation: 'create_private_cloud_request',
                title: texts.ask,
                button: texts.ask,
                fields: [
                  { name: 'vcpus', label: () => texts.vcpus },
                  { name: 'memory_gibibytes', label: () => t().fields.memory_mebibytes },
                  { name: 'disk_gigabytes', label: () => texts.disk, unit: () => 'GB' },
                  { name: 'region' },
                  { name: 'notes', label: () => texts.notes, as: 'long' },
                ],
                initial: { ...minimums },
              })
            }
          >
            {texts.ask}
          </Button>
        ) : null}
      </Between>
      {data.has_private_hosts ? null : (
        <Panel>
          <Soft>{texts.none}</Soft>
        </Panel>
      )}
      {data.zones.map((zone) => (
        <Zone key={zone.zone} zone={zone} />
      ))}
      <Requests />
      {dialog}
    </Stack>
  )
}

function Zone({ zone }: { readonly zone: PrivateCloudZone }): ReactNode {
  const texts = settingsTexts().privateCloud
  const cpu = texts.cpuOf(number(zone.vcpus_used), number(zone.vcpus))
  const memory = texts.memoryOf(mebibytes(zone.memory_used_mebibytes), mebibytes(zone.memory_mebibytes))
  return (
    <Panel title={zone.zone_display_name || zone.zone}>
      <Stack gap="tight">
        <Soft>{texts.hosts(zone.host_count, zone.server_count)}</Soft>
        <span>{cpu}</span>
        <Bar part={partOf(zone.vcpus_used, zone.vcpus)} label={cpu} />
        <span>{memory}</span>
        <Bar part={partOf(zone.memory_used_mebibytes, zone.memory_mebibytes)} label={memory} />
        <Soft>{texts.diskOf(gibibytes(zone.local_storage_used_gibibytes))}</Soft>
      </Stack>
    </Panel>
  )
}

function Requests(): ReactNode {
  const may = useMay()
  const texts = settingsTexts().privateCloud
  return (
    <Stack>
      <h2>{texts.requests}</h2>
      <Rows<'list_private_cloud_requests'>
        list="list_private_cloud_requests"
        label={texts.requests}
        idOf={({ id }) => id}
        nameOf={({ vcpus }) => `${number(vcpus)} ${texts.vcpus}`}
        none={texts.noRequests}
        columns={[
          { id: 'at', name: t().fields.created_at, cell: ({ created_at: at }) => <Time instant={at} /> },
          { id: 'cpu', name: texts.vcpus, cell: ({ vcpus }) => number(vcpus), isEnd: true },
          {
            id: 'memory',
            name: t().fields.memory_mebibytes,
            cell: (each) => gibibytes(each.memory_gibibytes),
            isEnd: true,
          },
          { id: 'state', name: t().fields.state, cell: ({ state }) => texts.states[state] },
          { id: 'reason', name: texts.reason, cell: ({ staff_reason: why }) => <span dir="auto">{why ?? '–'}</span> },
        ]}
        {...(may('cancel_private_cloud_request')
          ? {
              remove: {
                name: texts.withdraw,
                why: ({ state }) => (state === 'open' ? undefined : texts.states[state]),
                run: ({ id }) => call('cancel_private_cloud_request', { path: { id } }),
              },
            }
          : {})}
      />
    </Stack>
  )
}
