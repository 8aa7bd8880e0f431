"""What a guest does on the wire, told by lines of JSON and answered by lines of JSON."""
import errno, json, re, select, socket, struct, subprocess, sys, threading, time

NAME = sys.argv[1]
held = {}
heard = []
pulses = {}
resting = set()
lock = threading.Lock()


def family_of(address):
    return socket.AF_INET6 if ':' in address else socket.AF_INET


def serve(port):
    """Answers who it is and whom it sees, and repeats what it is sent."""
    tcp = socket.create_server(('::', port), family=socket.AF_INET6, dualstack_ipv6=True)

    def talk(connection, peer):
        address = peer[0].removeprefix('::ffff:')
        try:
            connection.sendall(f'{NAME} sees {address}\n'.encode())
            while data := connection.recv(65536):
                pulses.setdefault(address, []).append(time.monotonic())
                connection.sendall(data)
        except OSError:
            pass  # whoever had asked is gone

    def accept():
        while True:
            threading.Thread(target=talk, args=tcp.accept(), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    udp.bind(('::', port))

    def repeat():
        while True:
            data, peer = udp.recvfrom(65536)
            udp.sendto(data, peer)

    threading.Thread(target=repeat, daemon=True).start()


def connect(address, port, timeout=1, source=None):
    own = None if source is None else (source, 0)
    with socket.create_connection((address, port), timeout, own) as connection:
        return connection.makefile().readline().strip()


def hold(name, address, port, timeout=2):
    held[name] = socket.create_connection((address, port), timeout)
    held[name].settimeout(1)
    return held[name].makefile().readline().strip()


def say(name, text):
    held[name].sendall(text.encode())
    return held[name].recv(65536).decode().endswith(text)


def stream(name, address, port, pause=0.02, isSilent=False):
    """Sends something over the connection again and again, from now on, and notes when it comes back. Who answers says
    something first, unless it is silent."""
    one = held[name] = socket.create_connection((address, port), 5)
    one.settimeout(None)
    times = pulses.setdefault(name, [])
    if not isSilent:
        one.recv(65536)

    def send():
        while True:
            one.sendall(b'x')
            time.sleep(pause)

    def note():
        while one.recv(65536):
            times.append(time.monotonic())

    for work in (send, note):
        threading.Thread(target=work, daemon=True).start()
    return True


def drip(name, port, pause=0.02):
    """Sends something again and again to whoever connects, and notes when its kernel says that it has come."""
    server = socket.create_server(('', port))
    times = pulses.setdefault(name, [])

    def send():
        one, _ = server.accept()
        come = 0
        while True:
            if name not in resting:
                one.sendall(b'x')
            time.sleep(pause)
            # tcpi_bytes_acked of linux/tcp.h
            acknowledged = struct.unpack_from('=Q', one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 120)[0]
            if acknowledged > come:
                times.append(time.monotonic())
            come = acknowledged

    threading.Thread(target=send, daemon=True).start()
    return True


def rest(name, isResting):
    (resting.add if isResting else resting.discard)(name)
    return True


def forget_pulses():
    for times in pulses.values():
        del times[:-1]
    return True


def pulse(name):
    """Of what comes from a peer, or comes back over a connection: how often, and the longest pauses, in seconds."""
    times = list(pulses.get(name, []))
    pauses = [later - earlier for earlier, later in zip(times, times[1:])]
    return {'count': len(times), 'longest': max(pauses, default=0), 'silent': time.monotonic() - times[-1] if times else None}


def datagram(address, port, size=10, source=0, timeout=1):
    """Whether what was sent came back."""
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as udp:
        udp.bind(('', source))
        udp.settimeout(timeout)
        udp.sendto(b'x' * size, (address, port))
        return len(udp.recv(65536)) == size


def frame(text):
    """Sends a frame as it is."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind(('eth0', 0))
        wire.send(bytes.fromhex(text))
    return True


def hear():
    """Notes every frame that comes, from now on."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind(('eth0', 0))

    def note():
        while True:
            data, source = wire.recvfrom(65536)
            if source[2] != socket.PACKET_OUTGOING:
                with lock:
                    heard.append(data.hex())

    threading.Thread(target=note, daemon=True).start()
    return True


def frames():
    """Those that came since the last time."""
    with lock:
        result = list(heard)
        heard.clear()
    return result


def flow(protocol, address, source=0, port=0, size=10):
    """Begins a flow, and waits for nothing."""
    family = family_of(address)
    if protocol == 'udp':
        with socket.socket(family, socket.SOCK_DGRAM) as udp:
            udp.bind(('', source))
            udp.sendto(b'x' * size, (address, port))
    elif protocol == 'tcp':
        tcp = socket.socket(family, socket.SOCK_STREAM)
        tcp.setblocking(False)
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tcp.bind(('', source))
        tcp.connect_ex((address, port))
        threading.Timer(0.3, tcp.close).start()
    else:
        six = family == socket.AF_INET6
        with socket.socket(family, socket.SOCK_RAW, 58 if six else 1) as raw:
            raw.sendto(echo(six, source), (address, 0))
    return True


def echo(six, number):
    """A request for an echo; the kernel fills in the checksum of IPv6."""
    body = struct.pack('!BBHHH', 128 if six else 8, 0, 0, number, 1) + b'x' * 8
    total = sum(struct.unpack(f'!{len(body) // 2}H', body))
    total = (total & 0xffff) + (total >> 16)
    return body[:2] + struct.pack('!H', ~total & 0xffff) + body[4:]


def begin(protocol, address, source, port=0, size=10):
    """A socket by which the flow has begun; what comes to it is an answer, an error about the flow too."""
    family = family_of(address)
    if protocol == 'icmp':
        six = family == socket.AF_INET6
        raw = socket.socket(family, socket.SOCK_RAW, 58 if six else 1)
        raw.setblocking(False)
        raw.sendto(echo(six, source), (address, 0))
        return raw
    kind = socket.SOCK_STREAM if protocol == 'tcp' else socket.SOCK_DGRAM
    one = socket.socket(family, kind)
    one.setblocking(False)
    one.bind(('', source))
    one.connect_ex((address, port))
    if protocol == 'udp':
        one.send(b'x' * size)
    return one


def is_answered(one, protocol, source, size=10, **_):
    """Whether what came answers the flow: whole, or by saying that nobody is there."""
    try:
        if protocol == 'tcp':
            error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            return error in (0, errno.ECONNREFUSED)
        data = one.recv(65536)
        if protocol == 'udp':
            return len(data) == size
        at = 0 if one.family == socket.AF_INET6 else (data[0] & 15) * 4
        return data[at] in (0, 129) and struct.unpack('!H', data[at + 4:at + 6])[0] == source
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def exchange(flows, expected, patience):
    """Begins all flows, one after the other, and answers which of them were answered, by their places. Ends a moment
    after all that are expected to be were, or when the patience, in seconds, is over."""
    begun, answered, waited = {}, set(), set(expected)
    for place, one in enumerate(flows):
        begun[begin(**one)] = place
    end = time.monotonic() + patience
    while (left := end - time.monotonic()) > 0:
        open_ones = [one for one, place in begun.items() if place not in answered]
        streams = [one for one in open_ones if one.type == socket.SOCK_STREAM]
        packets = [one for one in open_ones if one.type != socket.SOCK_STREAM]
        readable, writable, _ = select.select(packets, streams, [], min(left, 0.05))
        for one in readable + writable:
            if is_answered(one, **flows[begun[one]]):
                answered.add(begun[one])
        if waited <= answered and end > time.monotonic() + 0.2:
            end = time.monotonic() + 0.2
    for one in begun:
        if one.type == socket.SOCK_STREAM:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        one.close()
    return sorted(answered)


NAMES_OF_PROTOCOLS = {1: 'icmp', 6: 'tcp', 17: 'udp', 58: 'icmp'}


def arrived():
    """Of the frames that came since the last time, what begins flows, as `udp 10.0.0.2 4000`: protocol, where it is
    from, and the port or the number of the echo there."""
    found = set()
    for text in frames():
        data = bytes.fromhex(text)
        kind = struct.unpack('!H', data[12:14])[0]
        if kind == 0x0800:
            protocol, head, offset = data[23], 14 + (data[14] & 15) * 4, struct.unpack('!H', data[20:22])[0] & 0x1fff
            address = socket.inet_ntop(socket.AF_INET, data[26:30])
        elif kind == 0x86dd:
            protocol, head, offset = data[20], 54, 0
            address = socket.inet_ntop(socket.AF_INET6, data[22:38])
            if protocol == 44:
                protocol, head, offset = data[54], 62, struct.unpack('!H', data[56:58])[0] >> 3
        else:
            continue
        name = NAMES_OF_PROTOCOLS.get(protocol)
        if name is None or offset != 0 or (name == 'icmp' and data[head] not in (8, 128)):
            continue
        at = head + 4 if name == 'icmp' else head
        found.add(f'{name} {address} {struct.unpack("!H", data[at:at + 2])[0]}')
    return sorted(found)


def resolve(server, name, kind=1):
    """The addresses that a server of names answers with; None when nobody answers, "refused" when it wants no more."""
    question = b''.join(bytes([len(part)]) + part.encode() for part in name.split('.')) + b'\0'
    with socket.socket(family_of(server), socket.SOCK_DGRAM) as udp:
        udp.settimeout(1)
        udp.connect((server, 53))
        udp.send(struct.pack('!HHHHHH', 7, 0x0100, 1, 0, 0, 0) + question + struct.pack('!HH', kind, 1))
        try:
            answer = udp.recv(4096)
        except ConnectionRefusedError:
            return 'refused'
    at, found = 12 + len(question) + 4, []
    for _ in range(struct.unpack('!H', answer[6:8])[0]):
        at += 2 if answer[at] >= 0xc0 else answer.index(b'\0', at) - at + 1
        what, _, _, length = struct.unpack('!HHIH', answer[at:at + 10])
        data = answer[at + 10:at + 10 + length]
        if what in (1, 28):
            found.append(socket.inet_ntop(socket.AF_INET if what == 1 else socket.AF_INET6, data))
        at += 10 + length
    return found


def lease(mac):
    """What DHCP offers: options by number, in hexadecimal; None when nobody answers."""
    raw = bytes.fromhex(mac.replace(':', ''))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0')
        udp.bind(('', 68))
        udp.settimeout(1)
        head = struct.pack('!BBBBIHH', 1, 1, 6, 0, 7, 0, 0x8000) + bytes(16) + raw + bytes(10 + 192)
        udp.sendto(head + bytes.fromhex('63825363350101370a0306790f1a0133360c2aff') + bytes(60), ('255.255.255.255', 67))
        answer = udp.recv(4096)
    at, options = 240, {'address': socket.inet_ntoa(answer[16:20])}
    while at < len(answer) and answer[at] != 255:
        options[str(answer[at])] = answer[at + 2:at + 2 + answer[at + 1]].hex()
        at += 2 + answer[at + 1]
    return options


def options_of(data, at):
    """Options of DHCPv6 by number."""
    found = {}
    while at + 4 <= len(data):
        what, length = struct.unpack('!HH', data[at:at + 4])
        found[what] = data[at + 4:at + 4 + length]
        at += 4 + length
    return found


def lease6(mac):
    """What DHCPv6 gives: the address, and options by number, in hexadecimal; None when nobody answers."""
    raw = bytes.fromhex(mac.replace(':', ''))
    client = struct.pack('!HHHH', 1, 10, 3, 1) + raw
    asked = struct.pack('!HHHH', 6, 4, 23, 24) + struct.pack('!HHH', 8, 2, 0) + struct.pack('!HHIII', 3, 12, 1, 0, 0)
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
        udp.bind(('::', 546))
        udp.settimeout(1)
        scope = socket.if_nametoindex('eth0')

        def ask(kind, *parts):
            udp.sendto(bytes([kind, 0, 0, 7]) + b''.join(parts), ('ff02::1:2', 547, 0, scope))
            answer, _ = udp.recvfrom(4096)
            return answer[0], options_of(answer, 4)

        _, offered = ask(1, client, asked)
        kind, given = ask(3, client, struct.pack('!HH', 2, len(offered[2])) + offered[2], asked)
    inner = options_of(given[3], 12)
    answer = {str(what): data.hex() for what, data in given.items()}
    return {**answer, 'kind': kind, 'address': socket.inet_ntop(socket.AF_INET6, inner[5][:16])}


def advertisement():
    """What the router of the network advertises when it is asked; None when nobody does."""
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58) as raw:
        raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        raw.settimeout(2)
        raw.sendto(struct.pack('!BBHI', 133, 0, 0, 0), ('ff02::2', 0, 0, socket.if_nametoindex('eth0')))
        while True:
            data, peer = raw.recvfrom(4096)
            if data[0] == 134:
                break
    answer, at = {'from': peer[0].split('%')[0], 'flags': data[5], 'lifetime': struct.unpack('!H', data[6:8])[0]}, 16
    answer['prefixes'] = []
    while at + 2 <= len(data) and data[at + 1] > 0:
        if data[at] == 5:
            answer['mtu'] = struct.unpack('!I', data[at + 4:at + 8])[0]
        if data[at] == 3:
            prefix = socket.inet_ntop(socket.AF_INET6, data[at + 16:at + 32])
            answer['prefixes'].append({'prefix': f'{prefix}/{data[at + 2]}', 'flags': data[at + 3]})
        at += data[at + 1] * 8
    return answer


def path(address, size):
    """Sends an echo of so many bytes that nobody may take apart: `answered`, the MTU that somebody on the way has, or
    None when nothing comes back."""
    six = ':' in address
    command = ['ping', '-6' if six else '-4', '-c', '1', '-W', '2', '-M', 'do', '-s', str(size), address]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    if ' 0% packet loss' in text:
        return 'answered'
    found = re.search(r'mtu ?= ?(\d+)', text)
    return int(found[1]) if found else None


for port in (9, 1000, 2000):
    serve(port)
print(json.dumps(True), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    try:
        answer = globals()[order.pop('do')](**order)
    except OSError:
        answer = None
    except Exception as error:
        answer = {'error': repr(error)}
    print(json.dumps(answer), flush=True)
