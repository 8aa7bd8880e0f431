/** What is attached to a server: networks and storages. */
import { type ReactNode, useState } from 'react'
import type { Interface, Server } from '../../../client/schema.ts'
import { itemsOf, readAgain, useList, useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { asRefusal, Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Loading, Panel, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Table } from '../../ui/table.tsx'
import { FullList } from '../list-page.tsx'
import type { Thing } from '../noun.ts'
import { theNoun } from '../registry.ts'
import { Value } from '../value.tsx'

interface PartProps {
  readonly item: Server
}

export function StoragesTab({ item }: PartProps): ReactNode {
  const { data, error } = useList('list_storages', { server_id: item.id })
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  // storages, as the noun has them
  const items = itemsOf(data) as readonly unknown[] as readonly Thing[]
  return (
    <Stack>
      <FullList noun={theNoun('storage')} items={items} />
    </Stack>
  )
}

export function NetworksTab({ item }: PartProps): ReactNode {
  const { data, error } = useRead('list_server_interfaces', { path: { id: item.id } }, { isAlwaysStale: true })
  const [leaving, setLeaving] = useState<Interface>()
  const may = useMay()
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  const texts = t().server
  return (
    <Stack>
      {data.items.length === 0 ? (
        <Panel>
          <Soft>{t().ui.none}</Soft>
        </Panel>
      ) : (
        <Table
          label={t().fields.networks}
          items={data.items}
          columns={[
            { id: 'kind', name: t().fields.kind, cell: ({ kind }) => texts.kinds[kind] },
            {
              id: 'network',
              name: t().fields.network_id,
              cell: (each) => <Value field="network_id" value={each.network_id} />,
            },
            { id: 'ipv4', name: 'IPv4', cell: ({ ipv4_address: address }) => address ?? '–' },
            { id: 'ipv6', name: 'IPv6', cell: ({ ipv6_address: address }) => address ?? '–' },
            {
              id: 'leave',
              name: t().list.actions,
              isEnd: true,
              cell: (each) =>
                each.kind === 'private' && may('detach_server_network') ? (
                  <Button kind="quiet" onPress={() => setLeaving(each)}>
                    {texts.detach}
                  </Button>
                ) : (
                  '–'
                ),
            },
          ]}
        />
      )}
      {leaving === undefined ? null : <Detach server={item} leaving={leaving} close={() => setLeaving(undefined)} />}
    </Stack>
  )
}

interface DetachProps {
  readonly server: Server
  readonly leaving: Interface
  readonly close: () => void
}

function Detach({ server, leaving, close }: DetachProps): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const detach = async (): Promise<void> => {
    setBusy(true)
    try {
      await call('detach_server_network', { path: { id: server.id, interface_id: leaving.id } })
      await readAgain('list_server_interfaces', 'get_server')
      close()
    } catch (error) {
      setRefusal(asRefusal('detach_server_network', error))
      setBusy(false)
    }
  }
  return (
    <Confirm
      title={t().choices.confirm(t().server.detach, leaving.ipv4_address ?? leaving.mac_address)}
      goes={[t().server.goesInterface(leaving.ipv4_address ?? leaving.mac_address)]}
      button={t().server.detach}
      isBusy={isBusy}
      refusal={refusal}
      onConfirm={() => void detach()}
      onClose={close}
    />
  )
}
