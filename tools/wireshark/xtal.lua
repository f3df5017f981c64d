-- SPDX-License-Identifier: MIT
-- Wireshark dissector for Xtal's messages over TCP (src/wire/message.h, handshake.h).
--
--   wireshark -X lua_script:xtal.lua capture.pcap
--   tshark -X lua_script:xtal.lua -r capture.pcap -O xtal
--
-- or put a copy into the plugin folder (Help, About, Folders, Personal Lua Plugins). Ports are
-- random, so frames are known by their first bytes; a capture should have the beginning of each
-- connection. Encrypted connections (all between hosts, unless XTAL_SECURITY=none) stay TLS.

local HEADER = 192

local types = {
	[0x01] = "WRITE", [0x02] = "READ", [0x03] = "ATOMIC", [0x10] = "SEND",
	[0x20] = "RESPONSE",
	[0x30] = "PING", [0x31] = "PONG",
	[0x40] = "HELLO", [0x41] = "WELCOME", [0x42] = "REFUSE", [0x43] = "BYE",
}
local atomics = {
	[0] = "none", [1] = "CAS", [2] = "FAA", [3] = "SWAP", [4] = "SUB", [5] = "AND",
	[6] = "OR", [7] = "XOR",
}
local statuses = {
	[0] = "SUCCESS", [1] = "UNSUPPORTED_OPCODE", [2] = "LOCAL_LENGTH",
	[3] = "LOCAL_OPERATION", [4] = "LOCAL_ACCESS", [5] = "REMOTE_LENGTH",
	[6] = "REMOTE_UNSUPPORTED", [7] = "REMOTE_OPERATION", [8] = "REMOTE_ACCESS",
	[9] = "UNREACHABLE", [10] = "NOT_READY", [11] = "FLUSHED", [12] = "SUSPEND_DONE",
	[13] = "FLUSH_DONE", [14] = "UNHANDLED", [15] = "LOCAL_POISON", [16] = "REMOTE_POISON",
}

local xtal = Proto("xtal", "Xtal messages")
local f = {
	magic = ProtoField.string("xtal.magic", "Magic"),
	version = ProtoField.uint8("xtal.version", "Version"),
	type = ProtoField.uint8("xtal.type", "Type", base.HEX, types),
	flags = ProtoField.uint16("xtal.flags", "Flags", base.HEX),
	flag_token = ProtoField.bool("xtal.flags.token", "Token is valid", 16, nil, 0x0001),
	flag_notify = ProtoField.bool("xtal.flags.notify", "Notify is valid", 16, nil, 0x0002),
	flag_notify_token = ProtoField.bool("xtal.flags.notify_token", "Notify token is valid", 16,
					    nil, 0x0004),
	flag_last = ProtoField.bool("xtal.flags.last", "Last response of its operation", 16, nil,
				    0x0008),
	flag_resume = ProtoField.bool("xtal.flags.resume", "Resumes a session", 16, nil, 0x0001),
	header_length = ProtoField.uint16("xtal.header_length", "Header length"),
	status = ProtoField.uint32("xtal.status", "Status", base.DEC, statuses),

	atomic = ProtoField.uint8("xtal.atomic", "Atomic", base.DEC, atomics),
	operand_size = ProtoField.uint8("xtal.operand_size", "Operand size"),
	seq = ProtoField.uint64("xtal.seq", "Sequence number"),
	ack = ProtoField.uint64("xtal.ack", "Acknowledges"),
	id = ProtoField.uint64("xtal.id", "Operation"),
	incarnation = ProtoField.uint64("xtal.incarnation", "Incarnation", base.HEX),
	addr = ProtoField.uint64("xtal.addr", "Address", base.HEX),
	total = ProtoField.uint64("xtal.total", "Length of the operation"),
	offset = ProtoField.uint64("xtal.offset", "Offset of this piece"),
	piece = ProtoField.uint64("xtal.piece", "Length of this piece"),
	payload = ProtoField.uint64("xtal.payload_length", "Payload"),
	token = ProtoField.uint32("xtal.token", "Token", base.HEX),
	tid = ProtoField.uint32("xtal.tid", "Target context (tid)", base.HEX),
	key = ProtoField.uint32("xtal.key", "Segment index"),
	rights = ProtoField.uint32("xtal.rights", "Rights", base.HEX),
	operand = ProtoField.bytes("xtal.operand", "Operand"),
	compare = ProtoField.bytes("xtal.compare", "Compare"),
	notify_addr = ProtoField.uint64("xtal.notify.addr", "Notify address", base.HEX),
	notify_data = ProtoField.uint64("xtal.notify.data", "Notify data", base.HEX),
	notify_tid = ProtoField.uint32("xtal.notify.tid", "Notify tid", base.HEX),
	notify_token = ProtoField.uint32("xtal.notify.token", "Notify token", base.HEX),
	expiry = ProtoField.uint64("xtal.expiry", "Not after (target's clock, ns)"),
	stamp = ProtoField.uint64("xtal.stamp", "Sender's clock, ns"),
	data = ProtoField.bytes("xtal.data", "Data"),

	session = ProtoField.bytes("xtal.session", "Session"),
	peer_incarnation = ProtoField.uint64("xtal.peer_incarnation", "Receiver's incarnation",
					     base.HEX),
	eid = ProtoField.ipv6("xtal.eid", "Wanted device (EID)"),
	port = ProtoField.uint32("xtal.port", "Wanted port"),
	pipeline = ProtoField.uint32("xtal.pipeline", "Pipeline"),
	window = ProtoField.uint32("xtal.window", "Window"),
	max_piece = ProtoField.uint32("xtal.max_piece", "Longest piece"),
	first_seq = ProtoField.uint64("xtal.first_seq", "First sequence number"),
	attempt = ProtoField.uint64("xtal.attempt", "Connection of the session"),
	last_seq = ProtoField.uint64("xtal.last_seq", "Last one received or executed"),
	text = ProtoField.string("xtal.text", "Reason"),
}
local all = {}
for _, field in pairs(f) do
	all[#all + 1] = field
end
xtal.fields = all

local failed = ProtoExpert.new("xtal.failed", "The target refused or failed",
			       expert.group.RESPONSE_CODE, expert.severity.WARN)
local malformed = ProtoExpert.new("xtal.malformed", "No Xtal frame begins here",
				  expert.group.MALFORMED, expert.severity.ERROR)
xtal.experts = { failed, malformed }

local function is_frame(tvb, at)
	return tvb:len() >= at + 4 and tvb(at, 4):string() == "XTLM"
end

local function message(tvb, tree, kind)
	local flags = tree:add_le(f.flags, tvb(6, 2))
	flags:add_le(f.flag_token, tvb(6, 2))
	flags:add_le(f.flag_notify, tvb(6, 2))
	flags:add_le(f.flag_notify_token, tvb(6, 2))
	flags:add_le(f.flag_last, tvb(6, 2))
	tree:add_le(f.header_length, tvb(8, 2))
	tree:add_le(f.atomic, tvb(10, 1))
	tree:add_le(f.operand_size, tvb(11, 1))
	local status = tree:add_le(f.status, tvb(12, 4))
	tree:add_le(f.seq, tvb(16, 8))
	tree:add_le(f.ack, tvb(24, 8))
	tree:add_le(f.id, tvb(32, 8))
	tree:add_le(f.incarnation, tvb(40, 8))
	tree:add_le(f.addr, tvb(48, 8))
	tree:add_le(f.total, tvb(56, 8))
	tree:add_le(f.offset, tvb(64, 8))
	tree:add_le(f.piece, tvb(72, 8))
	tree:add_le(f.payload, tvb(80, 8))
	tree:add_le(f.token, tvb(88, 4))
	tree:add_le(f.tid, tvb(92, 4))
	tree:add_le(f.key, tvb(96, 4))
	tree:add_le(f.rights, tvb(100, 4))
	tree:add(f.operand, tvb(104, 16))
	tree:add(f.compare, tvb(120, 16))
	tree:add_le(f.notify_addr, tvb(136, 8))
	tree:add_le(f.notify_data, tvb(144, 8))
	tree:add_le(f.notify_tid, tvb(152, 4))
	tree:add_le(f.notify_token, tvb(156, 4))
	tree:add_le(f.expiry, tvb(160, 8))
	tree:add_le(f.stamp, tvb(168, 8))
	if tvb:len() > HEADER then
		tree:add(f.data, tvb(HEADER))
	end
	local words = string.format("%s %s", types[kind] or "?", tostring(tvb(32, 8):le_uint64()))
	if kind >= 0x30 then
		words = types[kind]
	elseif kind == 0x20 then
		local code = tvb(12, 4):le_uint()
		words = words .. " " .. (statuses[code] or code)
		if code ~= 0 then
			status:add_proto_expert_info(failed)
		end
	else
		if kind == 0x03 then
			words = words .. " " .. (atomics[tvb(10, 1):uint()] or "?")
		end
		words = string.format("%s %s+%s of %s at 0x%s", words,
				      tostring(tvb(72, 8):le_uint64()),
				      tostring(tvb(64, 8):le_uint64()),
				      tostring(tvb(56, 8):le_uint64()),
				      tvb(48, 8):le_uint64():tohex())
	end
	return words
end

local function handshake(tvb, tree, kind)
	local flags = tree:add_le(f.flags, tvb(6, 2))
	flags:add_le(f.flag_resume, tvb(6, 2))
	tree:add_le(f.header_length, tvb(8, 2))
	local status = tree:add_le(f.status, tvb(12, 4))
	tree:add(f.session, tvb(16, 16))
	tree:add_le(f.incarnation, tvb(32, 8))
	tree:add_le(f.peer_incarnation, tvb(40, 8))
	tree:add(f.eid, tvb(48, 16))
	tree:add_le(f.port, tvb(64, 4))
	tree:add_le(f.pipeline, tvb(68, 4))
	tree:add_le(f.window, tvb(72, 4))
	tree:add_le(f.max_piece, tvb(76, 4))
	tree:add_le(f.first_seq, tvb(80, 8))
	tree:add_le(f.attempt, tvb(88, 8))
	tree:add_le(f.last_seq, tvb(96, 8))
	tree:add_le(f.stamp, tvb(104, 8))
	tree:add(f.text, tvb(112, 80))
	local words = types[kind] or "?"
	if kind == 0x40 then
		words = string.format("%s%s port %u", words,
				      tvb(6, 2):le_uint() % 2 == 1 and " (resume)" or "",
				      tvb(64, 4):le_uint())
	elseif kind >= 0x42 and tvb(12, 4):le_uint() ~= 0 then
		words = words .. " " .. tvb(112, 80):stringz()
		status:add_proto_expert_info(failed)
	end
	return words
end

-- The whole frame. What is no frame ends the dissection of its segment.
local function length_of(tvb, _, at)
	if not is_frame(tvb, at) then
		return tvb:len() - at
	end
	if tvb(at + 5, 1):uint() >= 0x40 then
		return HEADER
	end
	local payload = tvb(at + 80, 8):le_uint64()
	if payload > 65536 then
		return tvb:len() - at
	end
	return HEADER + payload:tonumber()
end

local function one(tvb, pinfo, root)
	local tree = root:add(xtal, tvb())
	pinfo.cols.protocol = "Xtal"
	if not is_frame(tvb, 0) or tvb:len() < HEADER then
		tree:add_proto_expert_info(malformed)
		return tvb:len()
	end
	local kind = tvb(5, 1):uint()
	tree:add(f.magic, tvb(0, 4))
	tree:add(f.version, tvb(4, 1))
	tree:add(f.type, tvb(5, 1))
	local words = (kind >= 0x40 and handshake or message)(tvb, tree, kind)
	tree:append_text(", " .. words)
	local so_far = tostring(pinfo.cols.info)
	if so_far:find("Xtal: ", 1, true) then
		pinfo.cols.info:append("; " .. words)
	else
		pinfo.cols.info:set("Xtal: " .. words)
	end
	return tvb:len()
end

local function dissect(tvb, root)
	dissect_tcp_pdus(tvb, root, HEADER, length_of, one)
	return tvb:len()
end

function xtal.dissector(tvb, _, root)
	return dissect(tvb, root)
end

xtal:register_heuristic("tcp", function(tvb, pinfo, root)
	if not is_frame(tvb, 0) then
		return false
	end
	pinfo.conversation = xtal
	dissect(tvb, root) -- through xtal.dissector it would not be reassembled
	return true
end)

DissectorTable.get("tcp.port"):add_for_decode_as(xtal)
